"""Whether log weights can be trusted: how heavy their tail is, and whether the two halves of the chains agree.

A tail with shape k has moments up to 1/k: from k = 1/2 on the weights have no variance and a standard error
is meaningless, from k = 1 on they have no mean. The fit is that of Zhang and Stephens (2009, Technometrics 51,
316-325), with the tail's length and the prior of Vehtari, Simpson, Gelman, Yao and Gabry (2024, Pareto smoothed
importance sampling, JMLR 25), who also give what k a sample of n weights can stand: 1 - 1 / log10(n). Where halves do
not agree within their standard errors, these are too small.
"""

import math

import numpy as np
from numpy.typing import NDArray

from meltpoint.statistics.elementary import exp, log, log1p
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp

LEAST_TAIL = 5
"""Fewest weights in the tail for a fit."""

_PRIOR_SHAPE = 0.5
_PRIOR_COUNT = 10  # weights the prior is worth


def pareto_k(log_weights: NDArray[np.floating]) -> float:
    """Shape k of the tail of the weights; NaN for fewer than 25 weights or a tail that is all one value.

    >>> log_weights = np.random.default_rng(0).pareto(2.0, 10_000)  # tail of 1 / w^2: k = 1/2
    >>> round(pareto_k(np.log1p(log_weights)), 1)
    0.5
    """
    n = len(log_weights)
    length = int(min(n / 5, 3 * math.sqrt(n)))
    ordered = np.sort(log_weights)
    if length < LEAST_TAIL or not np.isfinite(ordered[-length - 1 :]).all():
        return math.nan
    relative = exp(ordered[-length - 1 :] - ordered[-1])
    beyond = relative[1:] - relative[0]
    if beyond[-1] <= 0 or beyond[math.floor(length / 4 + 0.5) - 1] <= 0:
        return math.nan
    shape = fit_shape(beyond)
    return (length * shape + _PRIOR_COUNT * _PRIOR_SHAPE) / (length + _PRIOR_COUNT)


def fit_shape(beyond: NDArray[np.floating]) -> float:
    """Shape k of a generalised Pareto distribution from increasing exceedances (value,) (Zhang and Stephens).

    The likelihood is profiled over theta = -k / sigma; the estimate is theta's mean under a weak prior, by
    quadrature over points that are set from the largest value and the first quartile.
    """
    n = len(beyond)
    points = 30 + math.isqrt(n)
    quartile = beyond[math.floor(n / 4 + 0.5) - 1]
    nodes = 1 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))
    theta = 1 / beyond[-1] + nodes / (3 * quartile)
    shapes = np.mean(log1p(-theta[:, np.newaxis] * beyond), axis=1)
    log_likelihood = n * (log(-theta / shapes) - shapes - 1)
    weights = exp(log_likelihood - log_likelihood.max())
    mean = np.sum(weights * theta) / weights.sum()
    return float(np.mean(log1p(-mean * beyond)))


def split_half_distance(log_weights: NDArray[np.floating]) -> float:
    """Distance, in standard errors, of the log mean weights of the two halves of independent chains (chain,).

    >>> split_half_distance(np.log([1.0, 3.0, 1.0, 3.0]))
    0.0
    """
    middle = len(log_weights) // 2
    halves = log_weights[:middle], log_weights[middle:]
    if middle < 2:
        return math.nan
    error = np.hypot(*(log_mean_error(half) for half in halves))
    return _in_errors(float(log_mean_exp(halves[0]) - log_mean_exp(halves[1])), float(error))


def split_half_mean_distance(log_weights: NDArray[np.floating]) -> float:
    """The same for the mean over examples of log mean weights (example, chain), from its spread over examples.

    Both halves have as many chains, or their biases would differ: of an odd number the last is left out.
    """
    examples, chains = log_weights.shape
    half = chains // 2
    if half < 1 or examples < 2:
        return math.nan
    differences = log_mean_exp(log_weights[:, :half]) - log_mean_exp(log_weights[:, half : 2 * half])
    return _in_errors(float(np.mean(differences)), float(np.std(differences, ddof=1) / np.sqrt(examples)))


def _in_errors(distance: float, error: float) -> float:
    if distance == 0:
        return 0.0
    return abs(distance) / error if error > 0 else math.nan
