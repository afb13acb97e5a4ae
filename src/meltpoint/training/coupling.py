"""Products of states with weights, and of states with states: dense, or sparse where that is less work.

Drawn units are mostly zero, so adding up the rows of those that are on beats the matrix product, unless many are
on or the rows are short. Means always take the matrix product.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.training.draws import Drawn
from meltpoint.training.sparse import Strips, joined, multiply, strips_of, transposed

Array: TypeAlias = NDArray[np.floating]
State: TypeAlias = Drawn | Array
"""Units (example, unit) of a layer: drawn, or means."""

_SPARSE_BELOW = 0.45  # share of ones up to which adding rows wins (docs/decisions/training.md)
_SHORTEST_ROW = 64


class Coupling:
    """Weights (lower unit, upper unit) that change from step to step, and their strips."""

    def __init__(self, weights: Array) -> None:
        self.weights = weights
        self._strips: dict[str, Strips] = {}

    def up(self, lower: State) -> Array:
        """Input (example, upper unit) from below: lower @ weights."""
        return self._product(lower, "up")

    def down(self, upper: State) -> Array:
        """Input (example, lower unit) from above: upper @ weights.T."""
        return self._product(upper, "down")

    def changed(self) -> None:
        """To be called whenever the weights were changed in place."""
        self._strips.clear()

    def _product(self, state: State, way: str) -> Array:
        matrix = self.weights if way == "up" else self.weights.T
        if not (isinstance(state, Drawn) and _sparse_pays(state.density, matrix.shape[1])):
            return dense(state, matrix.dtype) @ matrix
        if way not in self._strips:
            self._strips[way] = strips_of(matrix)
        return multiply(state.lists, self._strips[way])


def pair_sums(data: State, model: State, upper: Array) -> Array:
    """Sums of products (lower unit, upper unit) over examples, of the data phase and below them of the model phase."""
    if isinstance(data, Drawn) and isinstance(model, Drawn):
        density = (data.density * len(data) + model.density * len(model)) / (len(data) + len(model))
        if _sparse_pays(density, upper.shape[1]):
            both = joined(data.lists, model.lists)
            return multiply(transposed(both, data.units.shape[1]), strips_of(upper))
    return np.concatenate([dense(data, upper.dtype), dense(model, upper.dtype)]).T @ upper


def dense(state: State, kind: np.dtype) -> Array:
    """Units (example, unit) as floats of this kind."""
    return (state.units if isinstance(state, Drawn) else state).astype(kind, copy=False)


def _sparse_pays(density: float, row_length: int) -> bool:
    return density < _SPARSE_BELOW and row_length >= _SHORTEST_ROW
