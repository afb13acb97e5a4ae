"""Differences of estimates that share random numbers: errors, correlation, and limits from the limits of each.

Two models that are annealed with the same seed have chains with the same random numbers, so their errors may be
correlated. What a chain adds to the error of a log mean weight is, to first order, its weight over the mean weight,
less one; chains are independent, so the error of a difference follows from the differences of these parts, chain by
chain.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.statistics.elementary import exp
from meltpoint.statistics.log_space import effective_sample_size, log_mean_error, log_mean_exp

_CORRELATION_SIGMAS = 2.5  # taken off a correlation before it makes an interval narrower
_LEAST_CHAINS = 10  # effective, to believe a correlation


@dataclass(frozen=True)
class Limits:
    """A value, how far the truth may lie above and below it by noise, and by how much more for other reasons.

    `noise` (above, below) has the sizes that independent noise exceeds with a small probability. `rest` (above, below)
    is added as it is: allowances for bias, for what was found missing, and for noise of unknown dependence. It is
    negative where a certificate excludes part of what noise would allow.
    """

    value: float
    noise: tuple[float, float] = (0.0, 0.0)
    rest: tuple[float, float] = (0.0, 0.0)

    @property
    def low(self) -> float:
        """The lower limit."""
        return self.value - self.noise[1] - self.rest[1]

    @property
    def high(self) -> float:
        """The upper limit."""
        return self.value + self.noise[0] + self.rest[0]


def limits_of_difference(
    first: Limits, second: Limits, correlation: float = 0.0, more_noise: float = 0.0
) -> tuple[float, float]:
    """An interval for the difference of two values, never wider than the difference of their limits.

    The upper limit adds the noise of the first above and of the second below as lengths at an angle, whose cosine is
    the correlation (Zou and Donner, Statistics in Medicine 27, 2008: limits of a difference from those of its terms);
    the rest is added. `more_noise` is that of both together, independent of either.

    >>> limits_of_difference(Limits(1.0, (0.3, 0.3)), Limits(0.0, (0.4, 0.4)))
    (0.5, 1.5)
    """
    if min(*first.rest, *second.rest) < 0:
        correlation = min(0.0, correlation)  # or the ends might change places
    middle = first.value - second.value
    up = math.hypot(_joint(first.noise[0], second.noise[1], correlation), more_noise)
    down = math.hypot(_joint(first.noise[1], second.noise[0], correlation), more_noise)
    return middle - (first.rest[1] + second.rest[0] + down), middle + (first.rest[0] + second.rest[1] + up)


def _joint(one: float, other: float, correlation: float) -> float:
    """Size of the noise of a difference."""
    if math.isinf(one) or math.isinf(other):
        return math.inf
    return math.sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))


def paired_log_mean_error(
    one: NDArray[np.floating], other: NDArray[np.floating], shares: tuple[float, float] = (1.0, 1.0)
) -> Any:  # noqa: ANN401
    """Standard error of the difference of two log mean weights along the last axis, chains paired by their numbers.

    `shares` multiply the error of each. Where the numbers of chains differ nothing is known of the dependence, and the
    errors are added up: they are never more than that.

    >>> weights = np.log([1.0, 2.0, 3.0])
    >>> round(float(paired_log_mean_error(weights, weights + 5.0)), 9)
    0.0
    """
    if one.shape != other.shape or one.shape[-1] < 2:
        return shares[0] * log_mean_error(one) + shares[1] * log_mean_error(other)
    parts = shares[0] * _parts(one) - shares[1] * _parts(other)
    return np.std(parts, axis=-1, ddof=1) / np.sqrt(parts.shape[-1])


def believed_correlation(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """A lower limit of the correlation of the errors of two log mean weights (chain,) with paired chains.

    0 where it may be 0, the estimate itself where that is negative; -1, the worst, where numbers of chains differ. By
    Fisher's transformation, with the smaller effective number of chains.

    >>> believed_correlation(np.zeros(3), np.zeros(2))
    -1.0
    """
    if len(one) != len(other) or len(one) < 2:
        return -1.0
    parts = [_parts(one) - 1, _parts(other) - 1]
    size = math.prod(math.sqrt(float(np.sum(part * part))) for part in parts)
    if size == 0:
        return 0.0
    estimate = min(1.0, max(-1.0, float(np.sum(parts[0] * parts[1])) / size))
    effective = min(float(effective_sample_size(one)), float(effective_sample_size(other)))
    if estimate <= 0 or effective < _LEAST_CHAINS:
        return min(0.0, estimate)
    if estimate == 1.0:
        return 1.0
    return max(0.0, math.tanh(math.atanh(estimate) - _CORRELATION_SIGMAS / math.sqrt(effective - 3)))


def _parts(log_weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """Weights (…, chain) over their mean."""
    return exp(log_weights - log_mean_exp(log_weights)[..., np.newaxis])
