"""The mean over all N test examples from estimates for n of them (paper, section 4, with alpha = 1)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def control_variate_mean(
    values: NDArray[np.floating],
    control: NDArray[np.floating],
    control_all: NDArray[np.floating],
    errors: NDArray[np.floating],
) -> tuple[float, float]:
    """Mean over the population and its standard error.

    `values` (n,) are noisy estimates for a random subset, `errors` (n,) their own standard errors (NaN where
    unknown), `control` (n,) a cheap related quantity for the same subset, `control_all` (N,) for all examples.
    The error takes the finite population into account: what the choice of examples adds vanishes when n = N,
    what the chains add does not.

    >>> control_variate_mean(np.array([-5.0, -7.0]), np.array([1.0, -1.0]), np.zeros(9), np.full(2, 0.1))[0]
    -6.0
    """
    mean = float(np.mean(values - control) + np.mean(control_all))
    return mean, subset_error(values - control, errors, len(control_all))


def subset_error(differences: NDArray[np.floating], errors: NDArray[np.floating], population: int) -> float:
    """Standard error of the mean of n noisy values drawn without replacement from a finite population.

    Two-stage sampling: (1 - n/N) s^2 / n + (n/N) mean(error^2) / n. Where the values' own errors are unknown,
    the first term is taken without its factor, which can only make the error larger.
    """
    n = len(differences)
    own: Any = np.mean(np.square(errors))
    if n < 2:
        return float(np.sqrt(own)) if n == population else float("nan")
    spread = np.var(differences, ddof=1)
    if not np.isfinite(own):
        return float(np.sqrt(spread / n))
    share = n / population
    return float(np.sqrt(((1 - share) * spread + share * own) / n))
