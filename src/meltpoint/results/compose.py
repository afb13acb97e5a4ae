"""The report from the results of the estimators: both sides, their gap, the verdict, the certificates."""

import math
import platform
from dataclasses import replace
from functools import cache
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from meltpoint.defaults import Settings
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.evidence import Evidence
from meltpoint.estimators.limits import certified_log_z, log_z_limits, mean_log_prob_limits
from meltpoint.estimators.particles import LogProb, Melted, certify_mean_log_prob, particle_log_prob
from meltpoint.models.log_f import LogF
from meltpoint.results.report import PerExample, Report
from meltpoint.results.verdict import Case, judge
from meltpoint.statistics.control_variate import control_variate_mean, subset_error
from meltpoint.statistics.diagnostics import pareto_k, split_half_distance, split_half_mean_distance
from meltpoint.statistics.estimate import Estimate, combined_error
from meltpoint.statistics.log_space import log_mean_exp
from meltpoint.version import __version__


def compose(
    *,
    model: str,
    settings: Settings,
    log_f: LogF,
    log_z: LogZ,
    melted: Melted,
    positions: NDArray[np.integer],
    exact_log_z: float | None = None,
    evidence: Evidence | None = None,
    alpha: float | None = None,
    starts_from: str | None = None,
    densities: bool = False,
) -> Report:
    """The report from the results of the estimators; `positions` (example,) are RAISE's in the test set.

    Without `evidence` no other starts were tried. `alpha` is the probability that each of `between` and the
    certificates may miss, if it is not all of 1 - confidence because stages share it. `starts_from` is what RAISE's
    starts are drawn from, if they are; `densities` says that visible units are real.
    """
    alpha = 1 - settings.confidence if alpha is None else alpha
    # RAISE's weight is p_0(v) w_heat w_melt and its reverse weight Z_0 / w_melt: their product Z_0 p_0(v) w_heat is an
    # annealed importance weight of the hidden units given v, unbiased for f(v), where log f has no other control.
    log_f = log_f.controlled_by(positions, melted.log_weights + melted.log_reverse_weights)
    forward = log_z.log_weights
    particles = None if settings.particles is None else min(settings.particles, len(forward) + 1)
    prob = particle_log_prob(*melted, forward, particles)
    optimistic = optimistic_of(log_z, log_f)
    errors = np.hypot(prob.stderrs, log_f.stderrs[positions])
    mean, own_error = control_variate_mean(prob.values, log_f.values[positions], log_f.values, errors)
    conservative = _conservative(prob, mean, own_error, log_z.ess - 1)
    gap = _gap(prob, log_z, log_f, positions, optimistic.value - mean, own_error)
    plain_error = subset_error(prob.values, prob.stderrs, len(log_f.values))
    evidence = evidence if evidence and evidence.asked else None
    most = math.inf if densities else 0.0
    between = mean_log_prob_limits(
        log_f.mean_limits(alpha),
        log_z_limits(forward, evidence or Evidence(), alpha),
        conservative,
        alpha,
        log_z_ceiling=evidence.log_z_ceiling if evidence else math.inf,
        most=most,
    )
    exact = None if exact_log_z is None else _exact(exact_log_z, log_f)
    case = Case(
        gap,
        log_z.ess,
        len(forward),
        settings.tolerance,
        settings.base,
        pareto_k=pareto_k(forward),
        apart=float(np.fmax(split_half_distance(forward), split_half_mean_distance(prob.log_weights))),
        evidence=evidence,
        log_weights=forward,
        between=between,
        exact=exact.value if exact and log_f.is_exact else None,
        start_loss=start_loss_of(melted, log_f, positions) if starts_from else 0.0,
        starts_from=starts_from,
        log_f_rise=log_f.rise,
        log_f_unknown=log_f.unknown,
    )
    log_z_certificate = certified_log_z(forward, evidence or Evidence(), alpha)
    used = forward if prob.particles > 1 else forward[:0]
    certificate, certified_from = certify_mean_log_prob(*melted, used, 1 - alpha)
    return Report(
        model=model,
        test_examples=len(log_f.values),
        settings=settings,
        particles=prob.particles,
        pilot=None,
        conservative=conservative,
        optimistic=optimistic,
        gap=gap,
        between=between,
        upper_bound=min(most, float(np.mean(log_f.values)) - log_z_certificate.bound)
        if log_f.is_exact
        else None,
        exact=exact,
        log_z=log_z,
        ess=log_z.ess,
        pareto_k=case.pareto_k,
        log_f_error=log_f.mean.error,
        log_f_exact=log_f.is_exact,
        control_variate_gain=plain_error / conservative.stderr if conservative.stderr > 0 else math.nan,
        certificate=replace(certificate, confidence=settings.confidence),
        certified_estimate=certified_from,
        log_z_certificate=replace(log_z_certificate, confidence=settings.confidence),
        evidence=evidence,
        verdict=judge(case),
        per_example=PerExample(positions, prob.values, prob.stderrs, log_f.values[positions], *melted),
        ais_log_weights=forward,
        seconds={},
        versions=versions(),
        densities=densities,
        log_f=log_f,
    )


def start_loss_of(melted: Melted, log_f: LogF, positions: NDArray[np.integer]) -> float:
    """Mean nats that RAISE loses at its starts: as many starts as there are chains estimate f(v) so much too low.

    A chain's weight times its reverse weight is its start's importance weight, unbiased for f(v). With
    starts of weights u_c the estimate of log p_N(v) is, up to the same log f(v) - log Z,

        log mean_c (u_c / f) t_c = log mean_c (u_c / f) + log of the mean of t_c, weighted by u_c,

    where t_c is what melting keeps. The first term is lost at the starts, and no number of steps changes it.
    """
    starts = log_mean_exp(melted.log_weights + melted.log_reverse_weights)
    return float(np.mean(log_f.values[positions] - starts))


def optimistic_of(log_z: Estimate, log_f: LogF) -> Estimate:
    """The mean log-probability of the whole test set that follows from AIS."""
    mean = log_f.mean
    error, df = combined_error((log_z.stderr, log_z.df), (mean.error, mean.df))
    return Estimate(mean.value - log_z.value, error, "optimistic", log_z.covers, df=df)


def _exact(log_z: float, log_f: LogF) -> Estimate:
    """The exact mean log-probability, but for the error of log f, if it has one."""
    mean = log_f.mean
    covers = "nothing to cover: log Z by enumeration" if log_f.is_exact else "the noise of log f"
    return Estimate(mean.value - log_z, mean.error, "exact", covers, df=mean.df)


def _conservative(prob: LogProb, mean: float, own_error: float, forward_df: float) -> Estimate:
    """RAISE's mean over the test set; `forward_df` are the degrees of freedom of its forward chains' error."""
    if len(prob.group_parts):
        forward = _jackknife(prob.group_parts.mean(axis=0))
    else:
        forward = norm(mean_shares(prob) * prob.forward_stderrs), forward_df
    error, df = combined_error((own_error, len(prob.values) - 1), forward)
    return Estimate(
        mean,
        error,
        "conservative",
        "the choice of examples, the noise of their chains and of the forward chains; not the bias of few steps",
        df=df,
    )


def _gap(
    prob: LogProb, log_z: LogZ, log_f: LogF, positions: NDArray[np.integer], value: float, own_error: float
) -> Estimate:
    """The distance of RAISE's mean over the test set from AIS's; `own_error` is that of RAISE's examples and chains.

    Both have a part in common: a relative error of the sum of forward weights moves AIS's end by as much, and RAISE's
    by its forward share. And the mean of log f over the test set is in both, but for its correction by annealing, which
    is in AIS's end only. So the gap is known better than its ends.
    """
    correction = (log_f.mean.error, log_f.mean.df) if log_f.is_corrected else (0.0, math.inf)
    if log_f.is_corrected and np.array_equal(log_f.positions, positions):
        # Both ends have the same heating: AIS less RAISE is the mean of log f by heating less log p_N.
        differences = log_mean_exp(log_f.annealed) - prob.values
        own_error, correction = subset_error(differences, prob.stderrs, len(log_f.values)), (0.0, math.inf)
    shares = mean_shares(prob)
    in_ais = _shares_of_sum(log_z.log_weights, prob)
    common, common_df = log_z.stderr, log_z.ess - 1
    if len(prob.group_parts):
        common, common_df = _jackknife(prob.group_parts.mean(axis=0) + in_ais - 1 / len(in_ais))
    elif len(shares):
        common = norm((in_ais - shares) * prob.forward_stderrs)
    error, df = combined_error((own_error, len(positions) - 1), (common, common_df), correction)
    return Estimate(value, error, "difference", "the errors of both ends", df=df)


_version = cache(version)  # it reads a file


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    packages = {name: _version(name) for name in ("numpy", "numba")}
    return {"meltpoint": __version__, **packages, "Python": platform.python_version()}


def _jackknife(parts: NDArray[np.floating]) -> tuple[float, float]:
    """Standard error of a mean from what each of many equal groups adds to it (group,), and its degrees of freedom."""
    n = len(parts)
    return math.sqrt(n / (n - 1)) * norm(parts), n - 1.0


def mean_shares(prob: LogProb) -> NDArray[np.floating]:
    """Forward shares (group,), averaged over examples; none where there are no forward chains."""
    return prob.forward_shares.mean(axis=0) if prob.particles > 1 else np.zeros(0)


def _shares_of_sum(log_weights: NDArray[np.floating], prob: LogProb) -> NDArray[np.floating]:
    """The share (group,) of each group of particles in the sum of all forward weights."""
    groups = len(prob.forward_stderrs)
    if groups == 0:
        return np.zeros(0)
    used = groups * (prob.particles - 1)
    relative = np.exp(log_weights - np.max(log_weights))
    return relative[:used].reshape(groups, -1).sum(axis=1) / relative.sum()


def norm(errors: NDArray[np.floating]) -> float:
    """Euclidean norm."""
    return float(np.sqrt(np.sum(np.square(errors))))
