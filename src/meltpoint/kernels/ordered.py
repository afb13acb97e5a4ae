"""Sums of rows in float64 whose terms are added in order: the same bits however many chains are run together."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.parallel_compiling import KernelCall
from meltpoint.layers.unit import Bits, Floats

_COLUMNS = 128
"""Columns that are added at once: those of all rows stay in the second-level cache while chains are processed."""


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


def sum_rows_call() -> KernelCall:
    """What `sum_rows` compiles."""
    rows, columns = np.zeros((0, 0), np.uint8), np.zeros((0, 0))
    columns.flags.writeable = rows.flags.writeable = False
    return KernelCall(_add_ordered, (rows, columns, np.zeros((0, 0))))


def ordered_product(states: NDArray[Any], weights: Floats) -> Floats:
    """states @ weights (unit, column), for zeros and ones or for real states (row, unit)."""
    if states.dtype == np.uint8:
        return sum_rows(states, weights)
    rows, columns = (np.ascontiguousarray(each, np.float64).view() for each in (states, weights))
    rows.flags.writeable = columns.flags.writeable = False
    sums = np.zeros((len(rows), columns.shape[1]))
    _add_multiples(rows, columns, sums)
    return sums


@compiled
def _add_multiples(states: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """out (chain, column) += the rows of weights (unit, column), each as often as states (chain, unit) say."""
    n_chains, n_units = states.shape
    whole = n_units - n_units % 4
    for first in range(0, weights.shape[1], _COLUMNS):
        last = min(first + _COLUMNS, weights.shape[1])
        for chain in range(n_chains):
            total, times = out[chain, first:last], states[chain]
            for k in range(0, whole, 4):
                a, b = weights[k, first:last], weights[k + 1, first:last]
                c, d = weights[k + 2, first:last], weights[k + 3, first:last]
                p, q, r, s = times[k], times[k + 1], times[k + 2], times[k + 3]
                for j in range(total.size):
                    total[j] = (((total[j] + p * a[j]) + q * b[j]) + r * c[j]) + s * d[j]
            for k in range(whole, n_units):
                row, p = weights[k, first:last], times[k]
                for j in range(total.size):
                    total[j] += p * row[j]


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
