"""MNIST's idx files, plain or gzipped: a magic number, the lengths of the axes, the numbers."""

import gzip
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.bounded import (
    DEFLATE_RATIO,
    Allowance,
    Readable,
    allowance_of,
    open_regular,
    read_promised,
    reading,
    size_of,
)
from meltpoint.formats.formats import IDX_TYPES, Format, is_idx


def read_idx(path: Path) -> NDArray[Any]:
    """The numbers of an idx file: labels (example,), or images flattened to (example, pixel)."""
    with reading(path, Format.IDX.value), open_regular(path) as file:
        return _read(file, size_of(file), path, allowance_of(path, size_of(file)))


def read_gzip(path: Path) -> NDArray[Any]:
    """The numbers of a gzipped idx file, unpacking no more than its header promises."""
    with reading(path, Format.GZIP.value), open_regular(path) as packed, gzip.open(packed, "rb") as file:
        size = size_of(packed)
        return _read(file, size * DEFLATE_RATIO, path, allowance_of(path, size))


def _read(file: Readable, available: int, path: Path, allowance: Allowance) -> NDArray[Any]:
    magic = file.read(4)
    if not is_idx(magic):
        raise InputError(
            found=f"{path}, a gzip file that holds no idx data",
            expected="MNIST's gzipped idx format",
            remedy="unpack it with gunzip first",
        )
    shape = struct.unpack(f">{magic[3]}I", file.read(4 * magic[3]))
    if len(shape) > 2:
        # Each example is one row, however many axes it has.
        shape = (shape[0], math.prod(shape[1:]))
    return read_promised(file, np.dtype(IDX_TYPES[magic[2]]), shape, available, allowance)
