"""A matrix cut into strips some cache lines wide, as the row adder needs it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.rows import STRIP_BYTES


class Strips(NamedTuple):
    """A matrix (row, column) as strips of `width` columns, the last one padded, each strip row by row."""

    flat: NDArray[np.floating]
    n_rows: int
    n_columns: int
    width: int


def strips_of(matrix: NDArray[np.floating], n_lines: int = 1) -> Strips:
    """Cut a matrix, or a transposed view of one, into strips of n_lines cache lines."""
    n_rows, n_columns = matrix.shape
    width = n_lines * STRIP_BYTES // matrix.itemsize
    size = n_rows * (-(-n_columns // width)) * width
    room = np.empty(size * matrix.itemsize + STRIP_BYTES, np.uint8)
    skip = -room.ctypes.data % STRIP_BYTES
    flat = room[skip : skip + size * matrix.itemsize].view(matrix.dtype)
    _cut(matrix, flat, width)
    return Strips(flat, n_rows, n_columns, width)


@compiled
def _cut(matrix: np.ndarray, flat: np.ndarray, width: int) -> None:
    n_rows, n_columns = matrix.shape
    at = 0
    for column in range(0, n_columns, width):
        whole = column + width <= n_columns
        for row in range(n_rows):
            if whole and width == 16:  # a loop of known length is vectorised
                for k in range(16):
                    flat[at + k] = matrix[row, column + k]
            else:
                for k in range(width):
                    flat[at + k] = matrix[row, column + k] if column + k < n_columns else 0
            at += width
