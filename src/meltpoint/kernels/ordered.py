"""Products whose sums are added in order: the same bits on every machine, however many rows are multiplied together."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.products import multiply_strip
from meltpoint.kernels.strips import PAIR, Strips, strips_of

Floats: TypeAlias = NDArray[np.float64]


def ordered_product(states: NDArray[Any], weights: NDArray[Any] | Strips) -> Floats:
    """states @ weights (unit, *column), for zeros and ones or for real states (row, unit), in the weights' precision.

    For every product whose bits are promised: those of a matrix library differ between processors, and between calls
    with other numbers of rows. Weights that are used again are better given as `strips_for_products`.
    """
    if not isinstance(weights, Strips):
        if weights.ndim == 1:
            return ordered_product(states, weights[:, np.newaxis])[:, 0]
        weights = strips_for_products(weights)
    rows = np.ascontiguousarray(states, weights.flat.dtype).view()
    rows.flags.writeable = False  # of the view: one type of array, compiled once
    n_columns, width = weights.n_columns, weights.width
    sums: Any = np.empty((len(rows), -(-n_columns // width) * width), rows.dtype)
    _multiply(rows, weights, sums)
    return np.ascontiguousarray(sums[:, :n_columns])


def strips_for_products(weights: NDArray[Any]) -> Strips:
    """Weights (unit, column) as `ordered_product` reads them."""
    return strips_of(weights, PAIR)


@compiled
def _multiply(states: np.ndarray, weights: Strips, out: np.ndarray) -> None:
    """out (row, padded column) = states (row, unit) @ weights: all rows use a strip while it is in the cache."""
    n_rows, n_units = states.shape
    for column in range(0, out.shape[1], weights.width):
        multiply_strip(
            weights.flat, column * n_units, states, n_rows, n_units, out, column, out.shape[1]
        )  # fmt: skip
