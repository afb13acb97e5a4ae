"""Intervals for log Z and for the mean log-probability of a model itself, if no start missed a mode.

Four things are uncertain about log Z. The mean W of the forward weights is noisy, and where few chains carry it its
standard error is itself hardly known: hence Student's quantile with the effective number of chains. Weights are skewed:
where W came out low, so did its error, and the upper limit is widened for that. What W lacks according to other starts
is added above, with its error. And mass that the chains reach less than once in N times is either in W or not:
`Evidence.rare` is that variance, which the weights themselves do not show when no chain was there.
"""

import math
from dataclasses import replace

from meltpoint.estimators.evidence import Evidence
from meltpoint.layers.unit import Floats
from meltpoint.statistics.certificate import Certificate, certify_log_z
from meltpoint.statistics.estimate import Estimate
from meltpoint.statistics.log_space import effective_sample_size, log_mean_error, log_mean_exp
from meltpoint.statistics.special import stdtrit

LEAST_CHAINS = 2
"""Fewest AIS chains from which log Z has an upper limit."""

_SHARE_OF_OTHERS = 0.2  # fraction of alpha for the certificates of other bases
_LARGEST_PART = 0.8  # fraction of W from which on -log(1 - x) is replaced by its tangent


def log_z_limits(log_weights: Floats, evidence: Evidence, alpha: float) -> tuple[float, float]:
    """An interval for log Z from log weights (chain,) of the chosen path and what other starts found.

    The lower end is below the estimate by t standard errors, or a certificate's bound if that is higher. The upper
    end is the higher one of two, for the skewness of the weights, and for what the path lacks or seldom reaches:

        log W - log(1 - t se),    log W + log(1 + D/W + t sqrt(max(se^2, rare) + se_D^2))

    t is Student's quantile with as many degrees of freedom as there are effective chains, less one, at alpha / 4: half
    of alpha is kept for the certificates. The condition: no mode is missed by all starts.

    >>> import numpy as np
    >>> log_z_limits(np.zeros(400), Evidence(), 0.01)
    (0.0, 0.0)
    """
    if len(log_weights) < LEAST_CHAINS:
        return -math.inf, math.inf
    estimate, error = float(log_mean_exp(log_weights)), float(log_mean_error(log_weights))
    degrees = max(1.0, float(effective_sample_size(log_weights)) - 1)
    quantile = float(-stdtrit(degrees, alpha / 4))
    if not (math.isfinite(estimate) and math.isfinite(error)):
        return -math.inf, math.inf
    lower = max(estimate - quantile * error, certified_log_z(log_weights, evidence, alpha / 2).bound)
    strongest = evidence.strongest
    lacking, noise = (strongest.lacking, strongest.stderr) if strongest else (0.0, 0.0)
    spread = math.sqrt(max(error**2, evidence.rare) + noise**2)
    upper = estimate + max(widened(quantile * error), math.log1p(lacking + quantile * spread))
    return lower, max(lower, upper)


def certified_log_z(log_weights: Floats, evidence: Evidence, alpha: float) -> Certificate:
    """The largest certified lower bound on log Z of the chosen path and of other bases, which share alpha."""
    others = [finding for finding in evidence.findings if finding.log_weights]
    if not others:
        return certify_log_z(log_weights, 1 - alpha)
    own = certify_log_z(log_weights, 1 - (1 - _SHARE_OF_OTHERS) * alpha)
    best = max(finding.certified(1 - _SHARE_OF_OTHERS * alpha / len(others)) for finding in others)
    return replace(own, bound=max(own.bound, best), confidence=1 - alpha)


def mean_log_prob_limits(
    log_f: tuple[float, float],
    log_z: tuple[float, float],
    conservative: Estimate,
    alpha: float,
    *,
    log_z_ceiling: float = math.inf,
    most: float = math.inf,
) -> tuple[float, float]:
    """An interval for the mean log-probability, from limits of the mean of log f, of log Z, and N-particle RAISE.

    `conservative` is RAISE's mean over the test set, with the error of the shared forward chains in its own. The upper
    end is log f's upper less log Z's lower limit. The lower end is the lower one of two: log f's lower less log Z's
    upper limit, and RAISE less t standard errors at alpha / 4. Neither end goes beyond what is certain: log Z is at
    most `log_z_ceiling`, and the log-probability at most `most`, which is 0 but for densities. It is never reversed; an
    end that is not known is infinite.

    >>> mean_log_prob_limits((-3.0, -3.0), (1.0, 1.5), Estimate(-4.2, 0.1, "conservative", ""), 0.01)
    (-4.5, -4.0)
    """
    low, high = log_f[0] - log_z[1], log_f[1] - log_z[0]
    low = min(low, conservative.value - conservative.margin(alpha / 4))
    if math.isnan(low) or math.isnan(conservative.value):
        low = -math.inf
    high = min(most, math.inf if math.isnan(high) else high)
    floor = log_f[0] - log_z_ceiling
    return min(high, low if math.isnan(floor) else max(low, floor)), high


def widened(part: float) -> float:
    """-log(1 - part), and from a part of 0.8 on its tangent: an upper limit for means of skewed weights.

    With lognormal weights of spread 1.2 and 200 chains log(1 + part) is too low in 2.6 % of cases, this in 0.7 %.
    """
    beyond = max(0.0, part - _LARGEST_PART)
    return -math.log1p(-(part - beyond)) + beyond / (1 - _LARGEST_PART)
