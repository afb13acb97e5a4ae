"""Sums of rows in float64 whose terms are added in order: the same bits however many chains are run together."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.products import multiply_strip
from meltpoint.kernels.strips import PAIR, Strips, strips_of

Floats: TypeAlias = NDArray[np.float64]

_COLUMNS = 128
"""Columns that are added at once: those of all rows stay in the second-level cache while chains are processed."""


def sum_rows(bits: NDArray[Any], weights: Floats) -> Floats:
    """bits @ weights, for zeros and ones (row, unit): slower than the product.

    A dense product rounds differently for another number of rows, and results must not depend on how many chains are
    run together.
    """
    columns = np.ascontiguousarray(weights, np.float64).reshape(len(weights), -1)
    rows = np.ascontiguousarray(bits, np.uint8).view()
    columns.flags.writeable = rows.flags.writeable = False  # of the views: one type of array, compiled once
    sums = np.zeros((len(rows), columns.shape[1]))
    _add_ordered(rows, columns, sums)
    return sums.reshape(len(bits), *weights.shape[1:])


def ordered_product(states: NDArray[Any], weights: NDArray[Any] | Strips) -> Floats:
    """states @ weights (unit, *column), for zeros and ones or for real states (row, unit), in the weights' precision.

    For every product whose bits are promised: those of a matrix library differ between processors, and between calls
    with other numbers of rows. Weights that are used again are better given as `strips_for_products`.
    """
    if isinstance(weights, Strips):
        real, columns = weights.flat.dtype, weights.n_columns
    else:
        if states.dtype in (np.uint8, np.bool_) and weights.dtype == np.float64:
            return sum_rows(states, weights)
        if weights.ndim == 1:
            return ordered_product(states, weights[:, np.newaxis])[:, 0]
        real, columns = weights.dtype, weights.shape[1]
        weights = strips_for_products(weights)
    rows = np.ascontiguousarray(states, real).view()
    rows.flags.writeable = False
    sums: Any = np.empty((len(rows), -(-columns // weights.width) * weights.width), real)
    _multiply(rows, weights, sums)
    return np.ascontiguousarray(sums[:, :columns])


def strips_for_products(weights: NDArray[Any]) -> Strips:
    """Weights (unit, column) as `ordered_product` reads them."""
    return strips_of(weights, PAIR)


@compiled
def _multiply(states: np.ndarray, weights: Strips, out: np.ndarray) -> None:
    """out (row, padded column) = states (row, unit) @ weights, strip by strip: all rows use one while it is cached."""
    n_rows, n_units = states.shape
    for column in range(0, out.shape[1], weights.width):
        multiply_strip(weights.flat, column * n_units, states, n_rows, n_units, out, column, out.shape[1])


@compiled
def _add_ordered(bits: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """out (chain, column) += the rows of weights (unit, column) whose bits (chain, unit) are one."""
    n_chains, n_units = bits.shape
    lines = np.empty((n_chains, n_units), np.uint32)
    counts = np.zeros(n_chains, np.int64)
    for chain in range(n_chains):
        for unit in range(n_units):
            lines[chain, counts[chain]] = unit
            counts[chain] += bits[chain, unit]
    for first in range(0, weights.shape[1], _COLUMNS):
        last = min(first + _COLUMNS, weights.shape[1])
        for chain in range(n_chains):
            total = out[chain, first:last]
            whole = counts[chain] - counts[chain] % 4
            for k in range(0, whole, 4):  # four at a time: a quarter of the traffic, in the same order
                a, b = weights[lines[chain, k], first:last], weights[lines[chain, k + 1], first:last]
                c, d = weights[lines[chain, k + 2], first:last], weights[lines[chain, k + 3], first:last]
                for j in range(total.size):
                    total[j] = (((total[j] + a[j]) + b[j]) + c[j]) + d[j]
            for k in range(whole, counts[chain]):
                row = weights[lines[chain, k], first:last]
                for j in range(total.size):
                    total[j] += row[j]
