"""Means of weights that are only known by their logarithms."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.statistics.elementary import exp, log, log1p


def log_sum_exp(log_weights: NDArray[np.floating], axis: int = -1) -> Any:  # noqa: ANN401
    """Logarithm of the sum of the weights along an axis.

    The order of operations is that of `scipy.special.logsumexp` for real numbers, without its checks and
    conversions: they take as long as the sum of a few hundred weights, and a certificate has hundreds of such sums.

    >>> round(float(log_sum_exp(np.log([1.0, 3.0]))), 4)
    1.3863
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        largest = np.max(log_weights, axis=axis, keepdims=True)
        # The largest weights are counted, and the others are added as parts of them: log1p keeps their digits.
        is_largest = log_weights == largest
        count = np.sum(is_largest, axis=axis, keepdims=True, dtype=log_weights.dtype)
        others = exp(np.where(is_largest, -np.inf, log_weights) - largest)
        rest = np.sum(others, axis=axis, keepdims=True)
        log_sum = log1p(rest / np.maximum(count, 1)) + log(count) + largest
        finite = np.isfinite(log_sum)
        if not finite.all():
            log_sum = np.where(finite, log_sum, log(np.sum(exp(log_weights), axis=axis, keepdims=True)))
    return np.squeeze(log_sum, axis=axis)[()]


def log_mean_exp(log_weights: NDArray[np.floating], axis: int = -1) -> Any:  # noqa: ANN401
    """Logarithm of the mean weight along an axis.

    >>> round(float(log_mean_exp(np.log([1.0, 3.0]))), 4)
    0.6931
    """
    count = log_weights.shape[axis]
    if count == 0:
        raise InputError(found="no weights", expected="at least one", remedy="run at least one chain")
    return log_sum_exp(log_weights, axis=axis) - log(count)


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
    """Effective sample size of weights, (sum w)^2 / sum w^2: from 1 to the number of weights.

    >>> float(effective_sample_size(np.zeros(10)))
    10.0
    """
    relative = _relative(log_weights, axis)
    return np.sum(relative, axis=axis) ** 2 / np.sum(np.square(relative), axis=axis)


def _relative(log_weights: NDArray[np.floating], axis: int) -> NDArray[np.floating]:
    """Weights as parts of the largest, which keeps the digits that large log weights do not have."""
    return exp(log_weights - np.max(log_weights, axis=axis, keepdims=True))
