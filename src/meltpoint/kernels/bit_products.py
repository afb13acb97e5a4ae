"""Products of zeros and ones with a matrix, by adding up the rows of the ones.

The matrix is cut into strips one cache line wide, so that a strip stays in the first-level cache while all
lists are processed. Entries of the left side may be small counts: a unit that counts 2 has its row added twice.

`Coupling` and `pair_sums` choose between this and the matrix product. Drawn states are uint8 and mostly zero, so
adding rows is less work, unless many units are on or the rows are short. Means are floats and always take the
matrix product.
"""

from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.rows import STRIP_BYTES, Strips, add_rows_at_once, strips_of

State: TypeAlias = NDArray[np.uint8] | NDArray[np.floating]
"""Units (example, unit): uint8 where drawn, floats where means."""

_SPARSE_BELOW = 0.45  # share of ones up to which adding rows wins (docs/decisions/training.md)
_SHORTEST_ROW = 64


class Lists(NamedTuple):
    """Row i of a matrix of counts has its ones in the columns lines[starts[i] : starts[i + 1]] / STRIP_BYTES."""

    starts: NDArray[np.int64]
    lines: NDArray[np.uint32]


def list_rows(counts: NDArray[np.uint8]) -> Lists:
    """The ones of every row."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts.sum(axis=1, dtype=np.int64), out=starts[1:])
    lines = np.empty(starts[-1] + 2, np.uint32)
    _list(counts, lines)
    return Lists(starts, lines)


def multiply(lists: Lists, strips: Strips) -> NDArray[np.floating]:
    """Sum (list, column) of the matrix rows in every list."""
    out = np.empty((len(lists.starts) - 1, strips.n_columns), strips.flat.dtype)
    _multiply(lists, strips, out)
    return out


@compiled
def _list(counts: np.ndarray, lines: np.ndarray) -> None:
    n = 0
    for row in range(counts.shape[0]):
        units = counts[row]
        for j in range(units.size):
            # Without a branch: both places are written, and kept as far as the count goes.
            lines[n] = lines[n + 1] = STRIP_BYTES * j
            n += units[j]


@compiled
def _multiply(lists: Lists, strips: Strips, out: np.ndarray) -> None:
    width, n_columns = strips.width, strips.n_columns
    flat_out = out.reshape(-1)
    last = np.empty(width, out.dtype)
    for strip in range(-(-n_columns // width)):
        offset = strip * strips.n_rows * width
        column = strip * width
        for i in range(out.shape[0]):
            first = lists.starts[i]
            count = lists.starts[i + 1] - first
            if column + width <= n_columns:
                at = i * n_columns + column
                add_rows_at_once(strips.flat, offset, lists.lines, first, count, 1, True, flat_out, at)
            else:
                add_rows_at_once(strips.flat, offset, lists.lines, first, count, 1, True, last, 0)
                out[i, column:] = last[: n_columns - column]


class Coupling:
    """Weights (lower unit, upper unit) that change from step to step, and their strips."""

    def __init__(self, weights: NDArray[np.floating]) -> None:
        self.weights = weights
        self._strips: dict[str, Strips] = {}

    def up(self, lower: State) -> NDArray[np.floating]:
        """Input (example, upper unit) from below: lower @ weights."""
        return self._product(lower, "up")

    def down(self, upper: State) -> NDArray[np.floating]:
        """Input (example, lower unit) from above: upper @ weights.T."""
        return self._product(upper, "down")

    def changed(self) -> None:
        """To be called whenever the weights were changed in place."""
        self._strips.clear()

    def _product(self, states: State, way: str) -> NDArray[np.floating]:
        matrix = self.weights if way == "up" else self.weights.T
        ones = _if_sparse_pays(states, matrix.shape[1])
        if ones is None:
            return states.astype(matrix.dtype, copy=False) @ matrix
        if way not in self._strips:
            self._strips[way] = strips_of(matrix)
        return multiply(list_rows(ones), self._strips[way])


def pair_sums(lower: State, upper: NDArray[np.floating]) -> NDArray[np.floating]:
    """Sums of products over examples (lower unit, upper unit): lower.T @ upper."""
    ones = _if_sparse_pays(lower, upper.shape[1])
    if ones is None:
        return lower.T.astype(upper.dtype, copy=False) @ upper
    return multiply(list_rows(np.ascontiguousarray(ones.T)), strips_of(upper))


def _if_sparse_pays(states: State, row_length: int) -> NDArray[np.uint8] | None:
    """The same states if their product with rows of this length is best done by adding rows."""
    if states.dtype != np.uint8 or row_length < _SHORTEST_ROW:
        return None
    few = states.sum(dtype=np.int64) < _SPARSE_BELOW * states.size
    return cast(NDArray[np.uint8], states) if few else None
