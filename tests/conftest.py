"""Fixtures shared by all tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


# A busy machine is not a failing test.
settings.register_profile("meltpoint", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)


def pytest_configure(config: pytest.Config) -> None:
    """`make quick` tries fewer examples of every property; `make test` tries Hypothesis's hundred."""
    settings.load_profile("quick" if config.option.markexpr == "not slow" else "meltpoint")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the paper's model and data. Its absence skips a test, except in CI, where it fails it."""
    if not SHARED.is_dir():
        message = "needs ../shared (the paper's model and MNIST), which is not beside this checkout"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _interruptible():
    """A suite that a shell has started in the background ignores SIGINT, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
