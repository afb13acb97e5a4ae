"""Products of states with weights, and of states with states: dense, or sparse where that is less work.

Drawn states are uint8 and mostly zero, so adding up the rows of the units that are on beats the matrix
product, unless many are on or the rows are short. Means are floats and always take the matrix product.
"""

from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from meltpoint.training.sparse import Strips, list_columns, list_rows, multiply, strips_of, total

State: TypeAlias = NDArray[np.uint8] | NDArray[np.floating]
"""Units (example, unit): uint8 where drawn, floats where means."""

_SPARSE_BELOW = 0.45  # share of ones up to which adding rows wins (docs/decisions/training.md)
_SHORTEST_ROW = 64


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
    return multiply(list_columns(ones), strips_of(upper))


def _if_sparse_pays(states: State, row_length: int) -> NDArray[np.uint8] | None:
    """The same states if their product with rows of this length is best done by adding rows."""
    if states.dtype != np.uint8 or row_length < _SHORTEST_ROW:
        return None
    few = total(states) < _SPARSE_BELOW * states.size
    return cast(NDArray[np.uint8], states) if few else None
