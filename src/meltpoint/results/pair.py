"""Two models on the same test set: the difference of their mean log-probabilities, from their reports.

For models with exact log f the difference is mean(log f_A - log f_B) - (log Z_A - log Z_B). The first term is known for
this test set without any error, so only the errors of the two log Z are left.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from meltpoint.estimators.evidence import Evidence
from meltpoint.estimators.limits import certified_log_z, log_z_limits, mean_log_prob_limits
from meltpoint.estimators.particles import Melted, certify_mean_log_prob, particle_log_prob
from meltpoint.models.log_f import LogF
from meltpoint.records import Record, finite_or_none
from meltpoint.results.compose import mean_shares, norm
from meltpoint.results.report import Report
from meltpoint.statistics.control_variate import control_variate_mean
from meltpoint.statistics.estimate import Estimate, combined_error
from meltpoint.statistics.paired import (
    Limits,
    believed_correlation,
    limits_of_difference,
    paired_log_mean_error,
)
from meltpoint.statistics.special import stdtrit

About: TypeAlias = Literal["test set", "population"]
"""What a difference is about: these test examples, or all that they were drawn from."""


@dataclass(frozen=True)
class Pair(Record):
    """The mean log-probability of `first` less that of `second`, in nats per example.

    `optimistic` is the difference according to AIS, `conservative` according to RAISE, None where it was not run for
    the same examples, `exact` by enumeration, None where it is unknown. `between` holds that on this test set,
    `population` that on all examples that the test set was drawn from, each with the confidence of the comparison for
    all of its pairs together, if no start missed a mode; `sampling_error` is what the choice of test examples adds.
    `separate` is what the two reports would give by themselves with the same confidence. `at_most` and `at_least` hold
    whatever was missed, and are None where no such limit is known. `certified` (first, second) are lower limits of how
    much more each one's annealing model gives to the examples RAISE was run for than the other model does.
    """

    first: str
    second: str
    optimistic: Estimate
    conservative: Estimate | None
    exact: float | None
    between: tuple[float, float]
    population: tuple[float, float]
    separate: tuple[float, float]
    sampling_error: float
    correlation: float
    at_most: float | None
    at_least: float | None
    certified: tuple[float | None, float | None]

    def interval(self, about: About) -> tuple[float, float]:
        """The interval about the test set or the population."""
        return self.population if about == "population" else self.between

    def better(self, about: About) -> str | None:
        """The name of the better model, None if that is unknown."""
        low, high = self.interval(about)
        return self.first if low > 0 else self.second if high < 0 else None


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """One model of a comparison: its name and its report, which must be a composed one."""

    name: str
    report: Report

    @property
    def log_f(self) -> LogF:
        assert self.report.log_f is not None, "only a report that was read from JSON has none"
        return self.report.log_f

    @property
    def exact(self) -> float | None:
        """The exact mean log-probability, None unless both log Z and log f are exact."""
        return self.report.exact.value if self.report.exact and self.log_f.is_exact else None

    @property
    def evidence(self) -> Evidence:
        """What other starts found; empty if none were tried."""
        return self.report.evidence or Evidence()

    def limits(self, alpha: float) -> Limits:
        """Limits of the mean log-probability, those of `Report.between` at this alpha, with noise and rest apart.

        Noise is that of the chains of AIS. All else is rest: what other starts found, the distance of RAISE, the
        noise and the rise of an estimated log f.
        """
        if self.exact is not None:
            return Limits(self.exact)
        report = self.report
        forward = report.ais_log_weights
        log_z = log_z_limits(forward, self.evidence, alpha)
        low, high = mean_log_prob_limits(
            self.log_f.mean_limits(alpha),
            log_z,
            report.conservative,
            alpha,
            log_z_ceiling=self.evidence.log_z_ceiling,
            most=report.most_log_prob,
        )
        value = report.optimistic.value
        above, below = high - value, value - low
        plain = log_z_limits(forward, Evidence(), alpha)[1] - report.log_z.value
        noise_above = max(0.0, min(above, report.log_z.value - log_z[0]))
        noise_below = max(0.0, min(below, plain))
        if not (math.isfinite(above) and math.isfinite(below)):
            return Limits(value, rest=(above, below))
        return Limits(value, (noise_above, noise_below), (above - noise_above, below - noise_below))

    def certified_high(self, alpha: float, positions: Any = slice(None)) -> float:  # noqa: ANN401
        """An upper limit of the mean log-probability of these examples, whatever was missed; infinite without one."""
        if not self.log_f.is_exact:
            return math.inf
        bound = certified_log_z(self.report.ais_log_weights, self.evidence, alpha).bound
        return float(np.mean(self.log_f.values[positions])) - bound

    def certified_annealing_model(self, alpha: float) -> float:
        """A lower limit of the annealing model's mean log-probability of the examples RAISE was run for."""
        report = self.report
        forward = report.ais_log_weights if report.particles > 1 else report.ais_log_weights[:0]
        return certify_mean_log_prob(*_melted(report), forward, 1 - alpha)[0].bound


def compose_pair(first: ComparedModel, second: ComparedModel, alpha: float) -> Pair:
    """The difference of two models, for each of whose claims `alpha` is the probability of being wrong."""
    one, other = first.limits(alpha), second.limits(alpha)
    # Where Ctrl-C left chains that cannot be paired, the worst case is assumed.
    interrupted = first.report.interrupted or second.report.interrupted
    weights = first.report.ais_log_weights, second.report.ais_log_weights
    correlation = -1.0 if interrupted else believed_correlation(*weights)
    differences = first.log_f.values - second.log_f.values
    n = len(differences)
    sampling = float(np.std(differences, ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    margin = -float(stdtrit(n - 1, alpha / 4)) * sampling if n > 1 else math.inf
    return Pair(
        first=first.name,
        second=second.name,
        optimistic=_optimistic(first, second),
        conservative=_conservative(first, second),
        exact=None if first.exact is None or second.exact is None else first.exact - second.exact,
        between=limits_of_difference(one, other, correlation),
        population=limits_of_difference(one, other, correlation, margin),
        separate=(one.low - other.high, one.high - other.low),
        sampling_error=sampling,
        correlation=correlation,
        at_most=finite_or_none(_at_most(first, second, alpha)),
        at_least=finite_or_none(-_at_most(second, first, alpha)),
        certified=(_certified(first, second, alpha), _certified(second, first, alpha)),
    )


def _optimistic(first: ComparedModel, second: ComparedModel) -> Estimate:
    one, other = first.report, second.report
    if one.interrupted or other.interrupted:
        own = one.log_z.stderr + other.log_z.stderr
    else:
        own = float(paired_log_mean_error(one.ais_log_weights, other.ais_log_weights))
    error, df = combined_error(
        (own, min(one.ess, other.ess) - 1),
        (first.log_f.mean.error + second.log_f.mean.error, min(first.log_f.mean.df, second.log_f.mean.df)),
    )
    value = one.optimistic.value - other.optimistic.value
    return Estimate(value, error, "difference", "the noise of the AIS chains of both, paired", df=df)


def _conservative(first: ComparedModel, second: ComparedModel) -> Estimate | None:
    """RAISE's difference, example by example; None where it was not run for the same examples."""
    one, other = first.report, second.report
    positions = one.per_example.positions
    if one.interrupted or other.interrupted or not np.array_equal(positions, other.per_example.positions):
        return None
    probs = [particle_log_prob(*_melted(each), each.ais_log_weights, each.particles) for each in (one, other)]
    control = first.log_f.values - second.log_f.values
    own = paired_log_mean_error(probs[0].log_weights, probs[1].log_weights)
    log_f_errors = first.log_f.stderrs[positions] + second.log_f.stderrs[positions]
    value, choice = control_variate_mean(
        probs[0].values - probs[1].values, control[positions], control, np.hypot(own, log_f_errors)
    )
    shares = [mean_shares(prob) for prob in probs]
    if all(len(share) == 1 for share in shares):
        both = float(shares[0][0]), float(shares[1][0])
        common = float(paired_log_mean_error(one.ais_log_weights, other.ais_log_weights, both))
    else:
        common = sum(norm(share * prob.forward_stderrs) for share, prob in zip(shares, probs, strict=True))
    error, df = combined_error((choice, len(positions) - 1), (common, min(one.ess, other.ess) - 1))
    return Estimate(value, error, "difference", "examples, their chains and forward chains, paired", df=df)


def _at_most(first: ComparedModel, second: ComparedModel, alpha: float) -> float:
    """An upper limit of the difference, whatever was missed: the second model's exact value is needed for it."""
    if second.exact is None:
        return math.inf
    return (first.certified_high(alpha / 2) if first.exact is None else first.exact) - second.exact


def _certified(better: ComparedModel, worse: ComparedModel, alpha: float) -> float | None:
    """How much more the annealing model of `better` certainly gives to its examples than the model `worse` does.

    Four certificates of a pair share alpha: two of annealing models, two of log Z.
    """
    high = worse.certified_high(alpha / 4, better.report.per_example.positions)
    return finite_or_none(better.certified_annealing_model(alpha / 4) - high)


def _melted(report: Report) -> Melted:
    return Melted(report.per_example.log_weights, report.per_example.log_reverse_weights)
