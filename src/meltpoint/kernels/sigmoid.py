"""Sigmoid, softmax and softplus of arrays, with the same bits on every processor.

NumPy and SciPy have other instructions, and so other last bits, for each kind of processor.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.numerics import LIMIT, exp, log

_LANES = 32  # products that are made side by side: of units k, k + _LANES, …
_FACTORS = 30
"""Factors between 1 and 2 of each lane that are multiplied: 32 x 30 of them are below the largest float64."""


def sigmoid(inputs: NDArray[np.floating]) -> NDArray[Any]:
    """1 / (1 + exp(-input)) in the inputs' precision; inputs beyond ± LIMIT count as that."""
    inputs = np.ascontiguousarray(inputs)
    rates = np.empty_like(inputs)
    _sigmoid(inputs.reshape(-1), np.zeros(inputs.size, inputs.dtype), rates.reshape(-1))
    return rates


def sum_softplus(inputs: NDArray[np.floating]) -> NDArray[np.float64]:
    """Sum of log(1 + exp(input)) over the last axis, exponentials in the inputs' precision, sums in float64."""
    inputs = np.ascontiguousarray(inputs)
    sums = np.empty(inputs.shape[:-1])
    _sum_softplus(inputs.reshape(-1, inputs.shape[-1]), sums.reshape(-1))
    return sums


@compiled
def sigmoid_(field: np.ndarray, bias: np.ndarray) -> None:
    """Replace inputs (example, unit) by the probabilities sigmoid(field + bias) of being on."""
    t = np.empty(field.shape[1], field.dtype)  # a loop that reads and writes one array is not vectorised
    for row in range(field.shape[0]):
        t[:] = field[row]
        _sigmoid(t, bias, field[row])


@compiled
def _sigmoid(field: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    one, limit = out.dtype.type(1), out.dtype.type(LIMIT)
    for j in range(field.size):
        t = field[j] + bias[j]
        t = t if t < limit else limit
        t = t if t > -limit else -limit
        out[j] = one / (one + exp(-t))


@compiled
def _sum_softplus(inputs: np.ndarray, sums: np.ndarray) -> None:
    """softplus(x) = max(x, 0) + log(1 + exp(-|x|)): one logarithm for many units."""
    n_units = inputs.shape[1]
    limit, zero, one = inputs.dtype.type(LIMIT), inputs.dtype.type(0.0), inputs.dtype.type(1.0)
    factors, positive = np.empty(_LANES, inputs.dtype), np.empty(_LANES)
    for row in range(sums.size):
        units = inputs[row]
        total = 0.0
        positive[:] = 0.0
        for begin in range(0, n_units, _FACTORS * _LANES):
            end = min(begin + _FACTORS * _LANES, n_units)
            factors[:] = one
            for low in range(begin, end, _LANES):
                part = units[low : min(low + _LANES, end)]
                for lane in range(part.size):
                    x = part[lane]
                    factors[lane] *= one + exp(-min(abs(x), limit))
                    positive[lane] += max(x, zero)
            product = 1.0
            for lane in range(_LANES):
                product *= np.float64(factors[lane])
            total += log(product)
        for lane in range(_LANES):
            total += positive[lane]
        sums[row] = total


@compiled
def softmax_(field: np.ndarray, bias: np.ndarray, q: int) -> None:
    """Replace inputs (example, site and state) by the probabilities of the q states of each site."""
    t = np.empty(q, field.dtype)
    limit = field.dtype.type(LIMIT)
    for row in range(field.shape[0]):
        inputs = field[row]
        for first in range(0, inputs.size, q):
            largest = inputs[first] + bias[first]
            for s in range(q):
                t[s] = inputs[first + s] + bias[first + s]
                largest = max(largest, t[s])
            total = field.dtype.type(0)
            for s in range(q):
                lag = t[s] - largest
                t[s] = exp(lag if lag > -limit else -limit)
                total += t[s]
            for s in range(q):
                inputs[first + s] = t[s] / total
