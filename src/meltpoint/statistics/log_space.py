"""Means of weights that are only known by their logarithms."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from meltpoint.errors import InputError


def log_mean_exp(log_weights: NDArray[np.floating], axis: int = -1) -> Any:  # noqa: ANN401
    """Logarithm of the mean weight along an axis.

    >>> round(float(log_mean_exp(np.log([1.0, 3.0]))), 4)
    0.6931
    """
    count = log_weights.shape[axis]
    if count == 0:
        raise InputError(found="no weights", expected="at least one", remedy="run at least one chain")
    return logsumexp(log_weights, axis=axis) - np.log(count)


def log_mean_error(log_weights: NDArray[np.floating], axis: int = -1) -> Any:  # noqa: ANN401
    """Standard error of `log_mean_exp` by the delta method; NaN for a single weight, which has none.

    Where a few weights carry the mean, the spread between them is not seen and this is too small: read it
    together with the effective sample size.
    """
    count = log_weights.shape[axis]
    if count < 2:
        return np.full(np.delete(log_weights.shape, axis), np.nan)[()]
    relative = _relative(log_weights, axis)
    return np.std(relative, axis=axis, ddof=1) / np.mean(relative, axis=axis) / np.sqrt(count)


def effective_sample_size(log_weights: NDArray[np.floating], axis: int = -1) -> Any:  # noqa: ANN401
    """How many equal weights would be worth as much: (sum w)^2 / sum w^2, from 1 to the number of weights.

    >>> float(effective_sample_size(np.zeros(10)))
    10.0
    """
    relative = _relative(log_weights, axis)
    return np.sum(relative, axis=axis) ** 2 / np.sum(np.square(relative), axis=axis)


def _relative(log_weights: NDArray[np.floating], axis: int) -> NDArray[np.floating]:
    """Weights as parts of the largest, which keeps the digits that large log weights do not have."""
    return np.exp(log_weights - np.max(log_weights, axis=axis, keepdims=True))
