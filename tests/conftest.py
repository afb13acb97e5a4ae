"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


# A busy machine is not a failing test.
settings.register_profile("meltpoint", deadline=None)
settings.load_profile("meltpoint")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the paper's model and data. Its absence skips a test, except in CI, where it fails it."""
    if not SHARED.is_dir():
        message = "needs ../shared (the paper's model and MNIST), which is not beside this checkout"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return SHARED
