"""Writing a file whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from meltpoint.errors import InputError

_REMEDIES = {
    errno.ENOSPC: ("no space left on the disk", "free some space, or choose another disk"),
    errno.EDQUOT: ("no space left in the disk quota", "free some space, or choose another disk"),
    errno.ENOENT: ("a folder that does not exist", "create the folder first, or correct the path"),
    errno.ENOTDIR: ("a file where a folder should be", "correct the path"),
    errno.EACCES: ("no permission to write there", "choose another folder, or change the permissions"),
    errno.EPERM: ("no permission to write there", "choose another folder, or change the permissions"),
    errno.EROFS: ("a read-only disk", "choose another folder"),
    errno.ENAMETOOLONG: ("a name that is too long", "choose a shorter name"),
}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write; it takes its place at `path` when the block ends, complete and on the disk.

    If anything fails, `path` is left as it was and nothing stays beside it; a failure of the disk is an
    InputError. A link keeps pointing to its target, which is what gets replaced; an existing file keeps its
    permissions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "notes.txt") as file:
    ...         _ = file.write(b"whole or not at all")
    ...     (Path(folder) / "notes.txt").read_text()
    'whole or not at all'
    """
    try:
        target = Path(path).resolve()
        mode = _mode_of_replaceable(target)
        # Renaming is atomic only within one file system, so the temporary file lies beside its target.
        temporary = target.with_name(f".meltpoint-{secrets.token_hex(8)}.tmp")
        file = temporary.open("xb")
    except (OSError, ValueError) as problem:
        raise _unwritable(path, problem) from problem
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except BaseException as problem:
        # Ctrl-C must clean up too; what cannot be removed must not hide why.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise _unwritable(path, problem) from problem
        raise
    _sync_folder(target.parent)


def _mode_of_replaceable(target: Path) -> int | None:
    """Permissions of the file about to be replaced, None if there is none."""
    if not target.exists():
        return None
    # os.replace would put a file over a device such as /dev/null, and over a file marked read-only.
    if not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file")
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, "read-only")
    return target.stat().st_mode & 0o7777


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _unwritable(path: str | os.PathLike[str], problem: OSError | ValueError) -> InputError:
    code = problem.errno if isinstance(problem, OSError) else None
    found, remedy = _REMEDIES.get(code or 0, (str(problem), "choose another path"))
    return InputError(
        found=f"{found} while writing {os.fspath(path)!r}",
        expected="a path that can be written to",
        remedy=remedy,
    )
