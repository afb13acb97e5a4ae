"""Temporary files that a killed process leaves behind, and how the next one recognises and removes them.

A temporary file is locked by the process that writes it. The system releases the lock when that process ends, however
it ends. So a temporary file whose lock can be taken has no living writer, on this machine or on another one that
shares the disk. Process numbers could not tell that: containers on one disk have the same ones.
"""

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None
    import msvcrt

_PREFIX, _SUFFIX = ".meltpoint-", ".tmp"
_FOLDER_PREFIX = "meltpoint-workers-"
_MARK = "in-use"
_ATTEMPTS = 100


def create_temporary(folder: Path) -> tuple[Path, BinaryIO]:
    """A new, locked temporary file in a folder, open for writing; those of killed processes there are removed."""
    remove_abandoned(folder)
    for _ in range(_ATTEMPTS):
        path = folder / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        file = path.open("xb")
        # Between the two calls another process may have taken the file for abandoned.
        if try_lock(file.fileno()) and is_at(path, file.fileno()):
            return path, file
        file.close()
    raise OSError("no temporary file can be created")


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files in a folder that no process writes any more, as far as that is possible."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_temporary(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_if_abandoned(Path(entry.path))


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one of `create_temporary`'s."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A private folder for files that worker processes read; those of killed processes are removed."""
    shared = Path(tempfile.gettempdir())
    with suppress(OSError):
        for path in shared.glob(f"{_FOLDER_PREFIX}*"):
            _remove_folder_if_abandoned(path)
    folder, mark = _create_marked_folder()
    with mark:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _create_marked_folder() -> tuple[Path, BinaryIO]:
    """A new temporary folder, and the locked file in it that says that it is in use."""
    for _ in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))
        try:
            mark = (folder / _MARK).open("xb")
        except FileNotFoundError:  # another process has taken the folder for abandoned
            continue
        except OSError:
            with suppress(OSError):
                folder.rmdir()
            raise
        if try_lock(mark.fileno()) and is_at(folder / _MARK, mark.fileno()):
            return folder, mark
        mark.close()
    raise OSError("no temporary folder can be created")


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed, unless another has locked it."""
    try:
        if fcntl is None:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # pyright: ignore
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a disk without locks: nobody else can have one
        return True
    return True


def _remove_if_abandoned(path: Path) -> bool:
    """Remove a file if nobody has locked it. A disk without locks keeps its files."""
    with suppress(OSError):
        if fcntl is None:
            path.unlink()
            return True
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return False
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(path, descriptor):
                path.unlink()
                return True
        finally:
            os.close(descriptor)
    return False


def _remove_folder_if_abandoned(folder: Path) -> None:
    status = folder.lstat()
    # The folder of all users' temporary files: only what is our own, and no link to elsewhere.
    own = os.name != "posix" or status.st_uid == os.getuid()
    if not own or not stat.S_ISDIR(status.st_mode):
        return
    if _remove_if_abandoned(folder / _MARK):
        shutil.rmtree(folder, ignore_errors=True)
        return
    # An empty folder is about to get its mark, which is tried again then, or its process has ended before.
    with suppress(OSError):
        folder.rmdir()
    # The mark is the first file in a folder: if it is missing beside others somebody has begun to remove them.
    with suppress(OSError):
        if any(folder.iterdir()) and not os.path.lexists(folder / _MARK):
            shutil.rmtree(folder, ignore_errors=True)


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one at this path."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False
