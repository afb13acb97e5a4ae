"""Intervals for log Z and for the mean log-probability of a model itself, if no start missed a mode.

Three things are uncertain about log Z. The mean W of the forward weights is noisy, and where few chains carry it its
standard error is itself hardly known: hence Student's quantile with the effective number of chains. What W lacks
according to other starts is added above, with its error. And mass that the chains reach less than once in N times is
either in W or not: `Evidence.rare` is that variance, which the weights themselves do not show when no chain was there.
"""

import math

from scipy.stats import t as student_t

from meltpoint.estimators.evidence import Evidence
from meltpoint.statistics.certificate import certify_log_z
from meltpoint.statistics.log_space import effective_sample_size, log_mean_error, log_mean_exp
from meltpoint.units.unit import Floats

LEAST_CHAINS = 2
"""AIS chains without which log Z has no upper limit."""

LEAST_EXAMPLES = 5
"""Examples without which RAISE has no lower limit, unless they are all there are."""


def log_z_limits(log_weights: Floats, evidence: Evidence, alpha: float) -> tuple[float, float]:
    """An interval for log Z from log weights (chain,) of the chosen path and what other starts found.

    The lower end is below the estimate by t standard errors, or the certificate's bound if that is higher. The upper
    end holds what the path lacks and the noise of what it seldom reaches:

        log W + log(1 + D/W + t sqrt(max(se^2, rare) + se_D^2))

    t is Student's quantile with as many degrees of freedom as there are effective chains, less one, at alpha / 4: half
    of alpha is kept for what such approximations leave out. The condition: no mode is missed by all starts.

    >>> import numpy as np
    >>> log_z_limits(np.zeros(400), Evidence(), 0.01)
    (0.0, 0.0)
    """
    if len(log_weights) < LEAST_CHAINS:
        return -math.inf, math.inf
    estimate, error = float(log_mean_exp(log_weights)), float(log_mean_error(log_weights))
    degrees = max(1.0, float(effective_sample_size(log_weights)) - 1)
    quantile = float(student_t.ppf(1 - alpha / 4, degrees))
    lower = max(estimate - quantile * error, certify_log_z(log_weights, 1 - alpha / 2).bound)
    strongest = evidence.strongest
    lacking, noise = (strongest.lacking, strongest.stderr) if strongest else (0.0, 0.0)
    spread = math.sqrt(max(error**2, evidence.rare) + noise**2)
    return lower, estimate + math.log1p(lacking + quantile * spread)


def mean_log_prob_limits(
    log_f: tuple[float, float],
    log_z: tuple[float, float],
    conservative: float,
    stderr: float,
    examples: int,
    alpha: float,
) -> tuple[float, float]:
    """An interval for the mean log-probability, from limits of the mean of log f, of log Z, and N-particle RAISE.

    `conservative` is RAISE's mean over the test set and `stderr` its error, with that of the shared forward chains in
    it. The upper end is log f's upper less log Z's lower limit. The lower end is the lower one of two: log f's lower
    less log Z's upper limit, and RAISE less t standard errors with as many degrees of freedom as examples, less one.
    The interval is never reversed, as neither of the limits it is made from is.

    >>> mean_log_prob_limits((-3.0, -3.0), (1.0, 1.5), -4.2, 0.1, 100, 0.01)
    (-4.5, -4.0)
    """
    low, high = log_f[0] - log_z[1], log_f[1] - log_z[0]
    if examples < LEAST_EXAMPLES or not math.isfinite(stderr) or not math.isfinite(conservative):
        return (low if examples >= LEAST_EXAMPLES else -math.inf), high
    quantile = float(student_t.ppf(1 - alpha / 4, examples - 1))
    return min(low, conservative - quantile * stderr), high
