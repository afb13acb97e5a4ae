"""Fixtures shared by all tests."""

import getpass
import hashlib
import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


def _compile_afresh_when_kernels_change() -> None:
    """Numba's cache sees a change of the file a function stands in, not of the files it uses."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        source = path.read_bytes()
        if b"compiling import" in source or path.parent.name == "kernels":
            digest.update(source)
    cache = Path(tempfile.gettempdir()) / f"meltpoint-kernels-{getpass.getuser()}-{digest.hexdigest()[:16]}"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache))


_compile_afresh_when_kernels_change()

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


@pytest.fixture(scope="session", autouse=True)
def _interruptible():
    """A suite that a shell has started in the background ignores SIGINT, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
