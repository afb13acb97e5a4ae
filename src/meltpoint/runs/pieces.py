"""A piece of a run: a few arrays in a .npz file that knows where it belongs and whether it is whole.

Besides its arrays the file has a fingerprint of them, of the run and of the piece's own name. A file that was cut
off, changed, renamed or copied from another run does not pass for the piece.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.files.atomic import atomic_write
from meltpoint.files.npz import NUMBERS, entry_names, read_entries, write_npz
from meltpoint.runs.fingerprint import Arrays, fingerprint

_SEAL = "fingerprint"
_KINDS = NUMBERS + "U"


def write_piece(path: Path, arrays: Arrays, *context: str) -> None:
    """Write a piece, whole or not at all; `context` says where it belongs."""
    sealed = {**arrays, _SEAL: np.array(fingerprint(arrays, *context))}
    with atomic_write(path) as file:
        write_npz(file, sealed)


def read_piece(path: Path, *context: str) -> dict[str, NDArray[Any]]:
    """The arrays of a piece, or an InputError if it is not whole or does not belong here."""
    arrays = read_entries(path, entry_names(path), _KINDS)
    seal = arrays.pop(_SEAL, None)
    if seal is None or str(seal) != fingerprint(arrays, *context):
        raise InputError(
            found=f"{path}, which was changed or belongs elsewhere",
            expected="a piece of this run",
            remedy="remove it, and it is computed again",
        )
    return arrays
