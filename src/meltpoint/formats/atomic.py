"""Writing a file whole or not at all, and temporary files that the next process removes if theirs is killed.

A temporary file is locked by the process that writes it. The system releases the lock when that process ends, however
it ends. So a temporary file whose lock can be taken has no living writer, on this machine or on another one that
shares the disk. Process numbers could not tell that: containers on one disk have the same ones.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from meltpoint.errors import InputError, SystemFailure

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None
    import msvcrt

_WRONG_PATH = {
    errno.ENOENT: ("a folder that does not exist", "create the folder first, or correct the path"),
    errno.ENOTDIR: ("a file where a folder should be", "correct the path"),
    errno.EEXIST: ("a file where a folder should be", "correct the path"),
    errno.EISDIR: ("a folder where a file should be", "correct the path, or remove the folder"),
    errno.EACCES: ("no permission to write there", "choose another folder, or change the permissions"),
    errno.EPERM: ("no permission to write there", "choose another folder, or change the permissions"),
    errno.ENAMETOOLONG: ("a name that is too long", "choose a shorter name"),
    errno.EINVAL: ("something that is not a regular file", "choose another path"),
    errno.ELOOP: ("a link that leads nowhere", "remove the link, or choose another path"),
}
_DISK = {
    errno.ENOSPC: ("no space left on the disk", "free some space, or choose another disk"),
    errno.EDQUOT: ("no space left in the disk quota", "free some space, or choose another disk"),
    errno.EROFS: ("a read-only disk", "choose another folder"),
    errno.EIO: ("a disk that fails", "check the disk, or choose another one"),
}

_PREFIX, _SUFFIX = ".meltpoint-", ".tmp"
_ATTEMPTS = 100


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, follow_links: bool = True) -> Iterator[BinaryIO]:
    """A binary file to write; it takes its place at `path` when the block ends, complete and on the disk.

    If anything fails, `path` is left as it was and nothing stays beside it. A path that cannot be written to is an
    InputError, a failing disk a SystemFailure. A link keeps pointing to its target, which is what gets replaced;
    without `follow_links` the link itself is replaced, as a pipe or device would be, and its target left alone. An
    existing file keeps its permissions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "notes.txt") as file:
    ...         _ = file.write(b"whole or not at all")
    ...     (Path(folder) / "notes.txt").read_text()
    'whole or not at all'
    """
    try:
        target = Path(path).resolve() if follow_links else Path(path)
        mode = _mode_of_replaceable(target, replace_special=not follow_links)
        # Renaming is atomic only within one file system, so the temporary file lies beside its target.
        temporary, file = create_temporary(target.parent)
    # RuntimeError: links in a circle, before Python 3.13
    except (OSError, ValueError, RuntimeError) as problem:
        raise write_error(path, problem) from problem
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                temporary.chmod(mode)
            if os.name == "posix":  # while it is locked: nobody may take it for abandoned
                temporary.replace(target)
        if os.name != "posix":
            temporary.replace(target)
    except BaseException as problem:
        # Ctrl-C must clean up too; what cannot be removed must not hide why.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise write_error(path, problem) from problem
        raise
    _sync_folder(target.parent)


def make_folder(path: Path) -> None:
    """Create a folder, with its parents, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as problem:
        raise write_error(path, problem) from problem


def write_error(path: str | os.PathLike[str], problem: Exception) -> InputError | SystemFailure:
    """The error for a path that the system could not write to: an InputError, or a SystemFailure of the disk."""
    code = (problem.errno if isinstance(problem, OSError) else None) or errno.EINVAL
    reason = (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
    kind, table = (InputError, _WRONG_PATH) if code in _WRONG_PATH else (SystemFailure, _DISK)
    found, remedy = table.get(code, (reason, "choose another path"))
    return kind(
        found=f"{found if isinstance(problem, OSError) else reason} while writing {os.fspath(path)!r}",
        expected="a path that can be written to",
        remedy=remedy,
    )


def _mode_of_replaceable(target: Path, replace_special: bool) -> int | None:
    """Permissions of the file about to be replaced, None if there is none."""
    try:
        status = target.lstat()  # a link that was to be followed is resolved by now
    except FileNotFoundError:
        return None
    # os.replace would put a file over a device such as /dev/null, and over a file marked read-only.
    if not stat.S_ISREG(status.st_mode):
        if replace_special and not stat.S_ISDIR(status.st_mode):
            return None
        raise OSError(errno.EINVAL, "not a regular file")
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "read-only")
    return stat.S_IMODE(status.st_mode)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can."""
    with suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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


def _remove_if_abandoned(path: Path) -> None:
    """Remove a file if nobody has locked it. A disk without locks keeps its files."""
    with suppress(OSError):
        if fcntl is None:
            path.unlink()
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(path, descriptor):
                path.unlink()
        finally:
            os.close(descriptor)


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one at this path."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False
