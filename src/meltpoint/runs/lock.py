"""The lock of a run's folder: one writer at a time. It is released when its process ends, also when that is killed."""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from meltpoint.errors import InputError
from meltpoint.formats.atomic import is_at, try_lock, write_error
from meltpoint.runs.contents import LOCK

_LOCK_SECONDS = 0.5  # seconds: whoever only looks whether there is a writer holds the lock for an instant
_PAUSE = 0.02


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder, or say soon that somebody else does."""
    until = time.monotonic() + _LOCK_SECONDS
    while (descriptor := _try(folder / LOCK)) is None:
        if time.monotonic() > until:
            raise InputError(
                found=f"another process at work in {folder}",
                expected="one at a time",
                remedy="wait for it to end, or choose another folder (for other chains of the same run: part=1, "
                "--part 1)",
            )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        # Whatever fails here, what the holder has found must not be lost; the lock goes with the process.
        with suppress(OSError):
            os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether another process is known to write to a run's folder now."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | _SAFE)
    except OSError:  # no process ever wrote there, or the lock cannot be read
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and not try_lock(descriptor)
    finally:
        os.close(descriptor)


# Links are not followed, a pipe is not waited for, and nothing is cut off that should lie there.
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def _try(path: Path) -> int | None:
    """An open file that this process has locked, None if another one has."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _SAFE, 0o666)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError("not a regular file")
    except (OSError, ValueError) as problem:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(
                found=f"{path}, which is not a regular file",
                expected="a lock",
                remedy="remove it, or choose another folder",
            ) from problem
        raise write_error(path, problem) from problem
    # Somebody who removed the lock may have done so between the two.
    if try_lock(descriptor) and is_at(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None
