"""A matrix cut into strips some cache lines wide, as the row adder needs it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

STRIP_BYTES = 64
GROUP = 16
"""Units whose int16 weights may always be added up before the sum is widened to int32; often it can be more."""
BLOCK = 4
"""Integer rows that are added between two comparisons: lists of rows to widen are filled up to multiples of it."""
QUAD = 4
"""Units whose 16 partial sums make up one table."""
FEW = 64
"""Units whose int16 weights may be added up without widening at all, if they are all there are."""
PAIR = 2
"""Cache lines of most strips whose sums are widened and kept: a list of rows serves both of them."""


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
    n_strips, n_whole = -(-n_columns // width), n_columns // width
    flat = empty_aligned(n_strips * n_rows * width, matrix.dtype)
    strips, end = flat.reshape(n_strips, n_rows, width), n_whole * width
    strips[:n_whole] = matrix[:, :end].reshape(n_rows, n_whole, width).swapaxes(0, 1)
    strips[n_whole:] = 0
    strips[n_whole:, :, : n_columns - end] = matrix[:, end:]
    return Strips(flat, n_rows, n_columns, width)


def empty_aligned(size: int, dtype: np.dtype) -> NDArray[Any]:
    """Room for so many elements, of which the first starts a cache line: the adders rely on it."""
    room = np.empty(size * dtype.itemsize + STRIP_BYTES, np.uint8)
    skip = -room.ctypes.data % STRIP_BYTES
    return room[skip : skip + size * dtype.itemsize].view(dtype)


def largest_sum(weights: np.ndarray, n_rows: int) -> float:
    """The largest |sum| over n_rows rows that any column of weights (row, column) can have."""
    return max(
        float(np.sort(np.maximum(side, 0.0), axis=0)[-n_rows:].sum(axis=0).max())
        for side in (weights, -weights)
    )


def safe_group(rows: np.ndarray) -> int:
    """How many of the integer rows (row, column), at least GROUP, can be added up in int16, whichever they are."""
    n_safe = len(rows)
    for side in (rows, -rows):
        sums = np.cumsum(np.sort(np.maximum(side, 0).astype(np.int64), axis=0)[::-1], axis=0)
        n_safe = min(n_safe, int((sums <= np.iinfo(np.int16).max).all(axis=1).sum()))
    return max(n_safe, GROUP)


def strip_width(dtype: np.dtype) -> int:
    """Columns of one strip."""
    return STRIP_BYTES // dtype.itemsize
