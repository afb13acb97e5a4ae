"""The result of computing log Z alone: both sides, the interval, a verdict, and the settings that repeat it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from meltpoint.defaults import LogZSettings
from meltpoint.estimators.ais import LogZ, log_z_of
from meltpoint.estimators.evidence import MODES, Evidence
from meltpoint.estimators.limits import certified_log_z
from meltpoint.estimators.log_z_sides import EXACT_SAMPLES, Sides
from meltpoint.layers.unit import Floats
from meltpoint.records import Record, plain, plain_fields
from meltpoint.results.charts import Chart, sides_chart, spread_chart, steps_axis
from meltpoint.results.compose import versions
from meltpoint.results.document import Document, Estimates, Fact, Readable, Section
from meltpoint.results.stages import within_text
from meltpoint.results.verdict import Case, Verdict, judge
from meltpoint.results.words import (
    asked_text,
    between_text,
    bound,
    count,
    log10_text,
    modes_text,
    percent,
    run_facts,
    weights_text,
    with_error,
)
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.diagnostics import pareto_k, split_half_distance
from meltpoint.statistics.estimate import Estimate


@dataclass(frozen=True)
class LogZStage(Record):
    """One stage: its base and size, both sides with their errors, half the width of its interval, effective chains."""

    base: str
    steps: int
    chains: int
    lower: float
    lower_stderr: float
    upper: float
    upper_stderr: float
    half_width: float
    ess: float

    @property
    def within(self) -> str:
        return within_text(self.half_width, self.ess)


@dataclass(frozen=True, eq=False, repr=False)
class LogZBracket(Readable):
    """log Z from both sides, in nats. Print it, plot it, or call `to_dict()`.

    `lower` (AIS) and `upper` (states melted back) are the sides, `gap` is their distance, `between` an interval with
    the confidence of the settings, and `rests_on` says in words what the upper side and the interval rest on. `exact`
    is log Z itself where it is cheap to compute; it is then the answer (`trusted`), whatever the verdict on both sides.
    `lower_certificate` holds whatever was missed; so does `certified_upper`, which needs exact samples and is None
    without them. After Ctrl-C the bracket is `interrupted` and made of what was finished.
    """

    model: str
    clamped: int
    settings: LogZSettings
    lower: LogZ
    upper: Estimate
    gap: Estimate
    between: tuple[float, float]
    rests_on: str
    exact: float | None
    lower_certificate: Certificate
    certified_upper: float | None
    evidence: Evidence
    starts: int
    pareto_k: float
    verdict: Verdict
    log_reverse_weights: Floats
    stages: tuple[LogZStage, ...]
    seconds: dict[str, float]
    versions: dict[str, str]
    interrupted: bool = False

    def __repr__(self) -> str:
        return f"LogZBracket({self.model}: {self.lower} to {self.upper}, {self.verdict.reason})"

    def document(self) -> Document:
        s, exact = self.settings, self.known
        rows = [("lower (AIS)", self.lower), ("upper (melted back)", self.upper), ("gap", self.gap)]
        if exact is not None:
            rows.insert(1, ("exact", exact))
        digits = max(each.digits for each in (self.gap, exact) if each)
        least = "no interval: two chains are the least that has an error"
        stages = "; ".join(
            f"{count(stage.steps, 'step')} of {stage.chains:,} chains from base {stage.base}: "
            + (stage.within if math.isfinite(stage.half_width) else "no upper end")
            for stage in self.stages
        )
        section = Section.of(
            "log-z",
            "Both sides",
            *self._charts(),
            Estimates(rows, digits),
            Fact("between", between_text(self.between, self.gap.digits, self._sure, least)),
            Fact("log10 Z", log10_text(self.between if exact is None else (exact.value, exact.value))),
            Fact("rests on", self.rests_on),
            Fact("certified", self._certified_text()),
            Fact("other starts", self._other_starts()),
            Fact("weights", weights_text(self.lower.ess, len(self.lower.log_weights), self.pareto_k)),
            Fact("path", f"base {s.base}, {count(s.steps, 'step')}, {s.precision} precision"),
            Fact("asked", asked_text(s.budget, s.gap)),
            Fact("stages", stages if len(self.stages) > 1 else ""),
            Fact("interrupted", "by Ctrl-C: made of what was finished by then" if self.interrupted else ""),
            *run_facts(s.seed, self.seconds, self.versions),
        )
        answer, verdict = (
            between_text(self.between, 2, self._sure, "no interval is known", "to"),
            self.verdict,
        )
        if exact is not None:
            answer = f"{exact.value_text(exact.digits)}, exact"
        return Document(
            _title(self.model, self.clamped),
            self.trusted,
            str(verdict)
            if exact is None
            else verdict.beside_exact(f"log Z is {exact.value_text(exact.digits)}"),
            [section],
            answer=answer,
            interrupted=self.interrupted,
        )

    @property
    def known(self) -> Estimate | None:
        """The exact value where it was computed: then it is the answer, whatever the two sides say."""
        return None if self.exact is None else _exact_estimate(self.exact)

    @property
    def trusted(self) -> bool:
        """Whether the exact value is known or the verdict trusts both sides, and the run is complete: the exit code."""
        return (self.exact is not None or self.verdict.trusted) and not self.interrupted

    @property
    def _sure(self) -> str:
        return f"with {percent(self.settings.confidence)} confidence"

    def _certified_text(self) -> str:
        if not math.isfinite(self.lower_certificate.bound):
            return ""
        text = f"log Z > {bound(self.lower_certificate.bound, up=False)} {self._sure}"
        if self.certified_upper is not None and math.isfinite(self.certified_upper):
            text += f", and log Z < {bound(self.certified_upper, up=True)}"
        return f"{text}, whatever was missed"

    def _other_starts(self) -> str:
        texts = [
            f"base {finding.name} {with_error(finding.log_z, finding.log_z_stderr)}"
            for finding in self.evidence.findings
            if finding.name not in (MODES, EXACT_SAMPLES, self.settings.base)
            and math.isfinite(finding.log_z_stderr)
        ]
        texts += [modes_text(self.evidence)] if self.evidence.modes else []
        return ", ".join(texts)

    def _charts(self) -> list[Chart]:
        """Both sides over the steps of all stages, and the log weights of both directions, which should overlap."""
        stages = sorted(self.stages or (stage_of(self),), key=lambda stage: stage.steps)
        steps = [stage.steps for stage in stages]
        melted, lower = "melted back, upper", "AIS, lower"
        spread = spread_chart(
            "weights",
            "Log weights of both directions",
            "log weight minus the lower side, nats",
            [
                ("AIS, forwards", "optimistic", self.lower.log_weights - self.lower.value),
                ("melted back", "conservative", self.log_reverse_weights - self.lower.value),
            ],
            "Where they overlap, the chains reach the model's states.",
        )
        sides = sides_chart(
            "Two sides; bars: ± 2 standard errors",
            steps_axis(steps),
            "log Z, nats",
            steps,
            [
                (melted, "conservative", [s.upper for s in stages], [s.upper_stderr for s in stages]),
                (lower, "optimistic", [s.lower for s in stages], [s.lower_stderr for s in stages]),
            ],
            self.exact,
            self.between,
            "Bars: two standard errors. Band: the interval.",
        )
        return [sides, spread]

    def to_dict(self) -> dict[str, Any]:
        return {
            **plain_fields(self, without=("log_reverse_weights", "evidence")),
            "trusted": self.trusted,
            "ess": plain(self.lower.ess),
            "evidence": self.evidence.to_dict(self.settings.confidence),
        }


@dataclass(frozen=True, eq=False)
class ExactLogZ(Readable):
    """log Z by elimination or enumeration, and nothing else."""

    model: str
    clamped: int
    exact: float
    seconds: dict[str, float]
    versions: dict[str, str]

    def document(self) -> Document:
        exact = _exact_estimate(self.exact)
        section = Section.of(
            "log-z",
            "The exact value",
            Estimates([("exact", exact)], exact.digits),
            Fact("log10 Z", log10_text((self.exact, self.exact))),
            *run_facts(None, self.seconds, self.versions),
        )
        said = "Exact: log Z was computed by adding up all states."
        return Document(
            _title(self.model, self.clamped), True, said, [section], exact.value_text(exact.digits)
        )

    def to_dict(self) -> dict[str, Any]:
        return plain_fields(self)


def _title(model: str, clamped: int) -> str:
    fixed = f", {count(clamped, 'unit')} clamped" if clamped else ""
    return f"log Z of {model}{fixed}, in nats"


def _exact_estimate(log_z: float) -> Estimate:
    return Estimate(log_z, 0.0, "exact", "nothing")


def compose_log_z(
    *,
    model: str,
    clamped: int,
    settings: LogZSettings,
    sides: Sides,
    rests_on: str,
    exact: float | None,
    alpha: float,
) -> LogZBracket:
    """The bracket that follows from both sides' weights; a stage of several has its part of alpha."""
    lower, upper = log_z_of(sides.forward), sides.upper
    between = sides.between(alpha)
    gap = Estimate(
        upper.value - lower.value, upper.stderr, "difference", "the errors of both sides", df=upper.df
    )
    case = Case(
        gap,
        lower.ess,
        len(sides.forward),
        settings.tolerance,
        settings.base,
        pareto_k=pareto_k(sides.forward),
        apart=split_half_distance(sides.forward),
        log_z=True,
        evidence=sides.evidence,
        log_weights=sides.forward,
        between=between,
        exact=exact,
    )
    certificate = certified_log_z(sides.forward, sides.evidence, alpha)
    return LogZBracket(
        model=model,
        clamped=clamped,
        settings=settings,
        lower=lower,
        upper=upper,
        gap=gap,
        between=between,
        rests_on=rests_on,
        exact=exact,
        lower_certificate=Certificate(certificate.bound, settings.confidence, certificate.quantity),
        certified_upper=sides.certified_upper(alpha),
        evidence=sides.evidence,
        starts=sides.n_starts,
        pareto_k=case.pareto_k,
        verdict=judge(case),
        log_reverse_weights=sides.melted,
        stages=(),
        seconds={},
        versions=versions(),
    )


def stage_of(bracket: LogZBracket) -> LogZStage:
    """The size and the result of a stage."""
    return LogZStage(
        base=bracket.settings.base,
        steps=bracket.settings.steps,
        chains=len(bracket.lower.log_weights),
        lower=bracket.lower.value,
        lower_stderr=bracket.lower.stderr,
        upper=bracket.upper.value,
        upper_stderr=bracket.upper.stderr,
        half_width=(bracket.between[1] - bracket.between[0]) / 2,
        ess=bracket.lower.ess,
    )
