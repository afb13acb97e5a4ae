"""Whether the two halves of the chains agree within their standard errors; if not, the errors are too small."""

import numpy as np
from numpy.typing import NDArray

from meltpoint.statistics.log_space import log_mean_error, log_mean_exp


def split_half_distance(log_weights: NDArray[np.floating]) -> float:
    """Distance, in standard errors, of the log mean weights of the two halves of independent chains (chain,).

    >>> split_half_distance(np.log([1.0, 3.0, 1.0, 3.0]))
    0.0
    """
    middle = len(log_weights) // 2
    halves = log_weights[:middle], log_weights[middle:]
    if middle < 2:
        return float("nan")
    error = np.hypot(*(log_mean_error(half) for half in halves))
    return _in_errors(float(log_mean_exp(halves[0]) - log_mean_exp(halves[1])), float(error))


def split_half_mean_distance(log_weights: NDArray[np.floating]) -> float:
    """The same for the mean over examples of log mean weights (example, chain), from its spread over examples.

    Both halves have as many chains, or their biases would differ: of an odd number the last is left out.
    """
    examples, chains = log_weights.shape
    half = chains // 2
    if half < 1 or examples < 2:
        return float("nan")
    differences = log_mean_exp(log_weights[:, :half]) - log_mean_exp(log_weights[:, half : 2 * half])
    return _in_errors(float(np.mean(differences)), float(np.std(differences, ddof=1) / np.sqrt(examples)))


def _in_errors(distance: float, error: float) -> float:
    if distance == 0:
        return 0.0
    return abs(distance) / error if error > 0 else float("nan")
