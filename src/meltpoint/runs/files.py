"""Files of runs and trainings: sealed arrays, locks, and paths that stay inside a folder.

A sealed .npz file has besides its arrays a seal: a fingerprint of them and of some texts, the context (a run and the
name of a record, or what a training checkpoint belongs to). A file that was cut off, changed, renamed or copied from
elsewhere does not pass. The seal is a checksum, not a signature: whoever has this library can seal anything. So what is
read is checked against the type of the record that is expected (`records`).
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.fingerprint import Arrays, fingerprint
from meltpoint.formats.atomic import atomic_write, is_at, try_lock, write_error
from meltpoint.formats.npz import NUMBERS, read_npz, write_npz
from meltpoint.formats.source import open_regular

_SEAL = "fingerprint"
_LOCK_SECONDS = 0.5  # whoever only asks whether there is a writer holds the lock for an instant
_PAUSE = 0.02
# Links are not followed, a pipe is not waited for, and nothing is cut off that should lie there.
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def write_sealed(path: str | os.PathLike[str], arrays: Arrays, *context: str) -> None:
    """Write arrays, whole or not at all; `context` says where they belong. A link at `path` is replaced."""
    sealed = {**arrays, _SEAL: np.array(fingerprint(arrays, *context))}
    with atomic_write(path, follow_links=False) as file:
        write_npz(file, sealed)


def read_sealed(path: str | os.PathLike[str], *context: str) -> dict[str, NDArray[Any]]:
    """The arrays of a sealed file, or an InputError if it is not whole or belongs elsewhere.

    Nothing but a regular file is opened: no link, pipe, device or folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sealed(f"{folder}/a.npz", {"log_weights": np.zeros(3)}, "run 1", "a")
    ...     read_sealed(f"{folder}/a.npz", "run 1", "a")
    {'log_weights': array([0., 0., 0.])}
    """
    file = Path(path)
    try:
        with open_regular(file, follow_links=False) as stream:
            arrays = read_npz(stream, file, NUMBERS + "U")
    except OSError as problem:
        raise InputError(
            found=f"{file}, which cannot be read ({'a link' if file.is_symlink() else problem.strerror})",
            expected="a regular file",
            remedy="remove it, and it is computed again",
        ) from problem
    seal = arrays.pop(_SEAL, None)
    if seal is None or str(seal) != fingerprint(arrays, *context):
        raise InputError(
            found=f"{file}, which was changed or belongs elsewhere",
            expected="a chunk of this run",
            remedy="remove it, and it is computed again",
        )
    return arrays


@contextmanager
def locked(path: Path, writer: str, remedy: str) -> Iterator[None]:
    """Hold the lock in a file, or say soon that another `writer` does.

    It is released when its process ends, also when that is killed.
    """
    until = time.monotonic() + _LOCK_SECONDS
    while (descriptor := _try_lock(path)) is None:
        if time.monotonic() > until:
            raise InputError(
                found=f"another {writer}", expected="one at a time", remedy=f"wait for it to end, or {remedy}"
            )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        # Whatever fails here, what the holder has found must not be lost; the lock goes with the process.
        with suppress(OSError):
            os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether another process is known to hold the lock in a file now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _SAFE)
    except OSError:  # no process ever had it, or it cannot be read
        return False
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and not try_lock(descriptor)
    finally:
        os.close(descriptor)


def _try_lock(path: Path) -> int | None:
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
                remedy="remove it, or choose another path",
            ) from problem
        raise write_error(path, problem) from problem
    # Somebody who removed the lock may have done so between the two.
    if try_lock(descriptor) and is_at(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def check_inside(path: Path, folder: Path) -> None:
    """Refuse a path that leaves a folder: by a link in place of a folder below it, by "..", or by beginning anew."""
    below = path.parent.relative_to(folder) if path.is_relative_to(folder) else Path("..")
    if ".." in below.parts:
        raise InputError(
            found=f"{path}, a path out of {folder}",
            expected="a name in this folder",
            remedy="restore the folder from a copy, or begin anew in another one",
        )
    # Links in the folder's own path are the caller's, and are followed.
    if Path(os.path.realpath(path.parent)) != Path(os.path.realpath(folder), below):
        inside = takewhile(lambda parent: parent != folder, path.parents)
        link = next((parent for parent in inside if parent.is_symlink()), path.parent)
        raise InputError(
            found=f"{link}, a link out of {folder}",
            expected="a folder",
            remedy="remove the link",
        )
