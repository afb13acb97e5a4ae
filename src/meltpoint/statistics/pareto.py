"""How heavy the tail of the weights is: the shape k of a generalised Pareto distribution fitted to the largest.

A tail with shape k has moments up to 1/k: from k = 1/2 on the weights have no variance and a standard error
is meaningless, from k = 1 on they have no mean. The fit is that of Zhang and Stephens (2009, Technometrics 51,
316-325), with the tail's length and the prior of Vehtari, Simpson, Gelman, Yao and Gabry (2024, Pareto smoothed
importance sampling, JMLR 25), who also give what k a sample of n weights can stand: 1 - 1 / log10(n).
"""

import math

import numpy as np
from numpy.typing import NDArray

from meltpoint.statistics.elementary import exp, log, log1p

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
