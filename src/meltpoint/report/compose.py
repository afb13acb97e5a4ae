"""From what the estimators found to the report: both sides, their gap, the verdict, the certificates."""

import math
import platform
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.pilot import Pilot
from meltpoint.estimators.reverse import LogProb
from meltpoint.models import Model
from meltpoint.models.log_f import LogF
from meltpoint.report.report import PerExample, Report, Settings
from meltpoint.report.stages import sigmas_of
from meltpoint.report.verdict import Signs, judge
from meltpoint.statistics.certificate import certify_log_z, certify_mean_log_prob
from meltpoint.statistics.control_variate import control_variate_mean, subset_error
from meltpoint.statistics.estimate import Estimate
from meltpoint.statistics.halves import halves_apart, halves_apart_mean
from meltpoint.statistics.pareto import pareto_k


def compose(
    model: Model,
    settings: Settings,
    log_f: LogF,
    exact: Estimate | None,
    log_z: LogZ,
    prob: LogProb,
    positions: NDArray[np.integer],
    seconds: dict[str, float],
    pilot: Pilot | None = None,
    doubt: float | None = None,
) -> Report:
    """The report of what the estimators found; `positions` (example,) are RAISE's in the test set.

    `doubt` is the probability that `between` may miss, if it is not all of 1 - confidence.
    """
    population = len(log_f.values)
    optimistic = optimistic_of(log_z, log_f)
    mean, error = control_variate_mean(prob.values, log_f.values[positions], log_f.values, prob.stderrs)
    plain_error = subset_error(prob.values, prob.stderrs, population)
    conservative = Estimate(
        mean,
        error,
        "conservative",
        "the choice of examples and the noise of their chains, not the bias of few steps",
    )
    gap = Estimate(
        optimistic.value - conservative.value,
        float(np.hypot(optimistic.stderr, conservative.stderr)),
        "difference",
        "both errors",
    )
    sigmas = sigmas_of((1 - settings.confidence if doubt is None else doubt) / 2)  # half on each side
    tail = pareto_k(log_z.log_weights)
    apart = np.fmax(halves_apart(log_z.log_weights), halves_apart_mean(prob.log_weights))
    signs = Signs(log_z.ess, len(log_z.log_weights), tail, float(apart))
    return Report(
        model=repr(model),
        test_examples=population,
        settings=settings,
        pilot=pilot,
        conservative=conservative,
        optimistic=optimistic,
        gap=gap,
        between=(
            conservative.value - sigmas * conservative.stderr,
            optimistic.value + sigmas * optimistic.stderr,
        ),
        exact=exact,
        log_z=log_z,
        ess=log_z.ess,
        pareto_k=tail,
        log_f_error=mean_error(log_f),
        control_variate_gain=plain_error / error if error > 0 else math.nan,
        certificate=certify_mean_log_prob(float(np.mean(prob.values)), len(prob.values), settings.confidence),
        log_z_certificate=certify_log_z(log_z.log_weights, settings.confidence),
        verdict=judge(gap, signs, settings.tolerance, settings.base),
        per_example=PerExample(
            positions, prob.values, prob.stderrs, log_f.values[positions], prob.log_weights
        ),
        ais_log_weights=log_z.log_weights,
        seconds=seconds,
        versions=versions(),
    )


def optimistic_of(log_z: LogZ, log_f: LogF) -> Estimate:
    """The mean log-probability of the whole test set that follows from AIS."""
    return Estimate(
        float(np.mean(log_f.values)) - log_z.value,
        float(np.hypot(log_z.stderr, mean_error(log_f))),
        "optimistic",
        log_z.covers,
    )


def mean_error(log_f: LogF) -> float:
    """Standard error of the mean of log f over the test set: 0 where log f is exact."""
    return float(np.sqrt(np.mean(np.square(log_f.stderrs)) / len(log_f.values)))


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    packages = {name: version(name) for name in ("meltpoint", "numpy", "numba")}
    return {**packages, "Python": platform.python_version()}
