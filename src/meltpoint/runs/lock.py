"""One writer at a time. A lock ends with its holder, also when that is killed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meltpoint.errors import InputError

LOCK = "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder, or say at once that somebody else does."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as problem:
        raise InputError(
            found=f"another process at work in {folder}",
            expected="one at a time",
            remedy="wait for it to end, or choose another folder (another part of the same run: part=1, --part 1)",
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
    """Whether somebody holds the lock now."""
    try:
        with locked(folder):
            return False
    except InputError:
        return True
