"""A chunk: arrays in a .npz file, sealed, so that a damaged or foreign file is recognised.

Besides its arrays the file has a seal: a fingerprint of them and of some texts, the context (a run and the chunk's
name, or what a training checkpoint belongs to). A file that was cut off, changed, renamed or copied from elsewhere does
not pass. The seal is a checksum, not a signature: whoever has this library can seal anything. So what is
read is checked against the type of the record that is expected (`records`).
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.fingerprint import Arrays, fingerprint
from meltpoint.formats.atomic import atomic_write
from meltpoint.formats.npz import NUMBERS, read_npz, write_npz
from meltpoint.formats.source import open_regular

_SEAL = "fingerprint"
_KINDS = NUMBERS + "U"


def write_sealed(path: str | os.PathLike[str], arrays: Arrays, *context: str) -> None:
    """Write a chunk, whole or not at all; `context` says where it belongs. A link at `path` is replaced."""
    sealed = {**arrays, _SEAL: np.array(fingerprint(arrays, *context))}
    with atomic_write(path, follow_links=False) as file:
        write_npz(file, sealed)


def read_sealed(path: str | os.PathLike[str], *context: str) -> dict[str, NDArray[Any]]:
    """The arrays of a chunk, or an InputError if it is not whole or belongs elsewhere.

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
            arrays = read_npz(stream, file, _KINDS)
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
