"""One writer at a time. A lock ends with its holder, also when that is killed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meltpoint.errors import InputError

LOCK = "lock"

_PATIENCE = 0.5  # seconds: whoever only looks whether there is a writer holds the lock for an instant


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder, or say soon that somebody else does."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=_PATIENCE)
    except Timeout as problem:
        raise InputError(
            found=f"another process at work in {folder}",
            expected="one at a time",
            remedy="wait for it to end, or choose another folder (for other chains of the same run: part=1, --part 1)",
        ) from problem
    except OSError as problem:
        raise InputError(
            found=f"{folder}, where no lock can be taken ({problem.strerror})",
            expected="a folder to write to",
            remedy="choose another folder, or change the permissions",
        ) from problem
    try:
        yield
    finally:
        lock.release()


def is_locked(folder: Path) -> bool:
    """Whether somebody is known to write to a run's folder now."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(folder / LOCK).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a folder one may only read
        return False
