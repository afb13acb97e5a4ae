"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine may pause any example for longer than Hypothesis allows; pytest's timeout catches what hangs.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the paper's model and data. Without it a test is skipped, and in CI it fails."""
    if not SHARED.is_dir():
        message = "needs ../shared (the paper's model and MNIST), which is not beside this checkout"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return SHARED
