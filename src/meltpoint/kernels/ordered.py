"""Sums of rows in float64 whose terms are added in order: the same bits however many chains are run together."""

import numpy as np

from meltpoint.kernels.compiling import compiled
from meltpoint.units.unit import Bits, Floats

_COLUMNS = 128
"""Of all rows together they stay in the second-level cache while chain after chain walks over them."""


def sum_rows(bits: Bits, weights: Floats) -> Floats:
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
