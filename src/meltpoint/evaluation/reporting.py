"""From stages to a result: the report of each, and the one that is reported, which also describes the others."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from meltpoint.defaults import Settings
from meltpoint.estimators.ais import log_z_of
from meltpoint.estimators.conventions import ConventionCheck
from meltpoint.estimators.pilot import FrictionSchedule
from meltpoint.evaluation.stage import ModelFacts, StageResult
from meltpoint.layers.unit import Floats
from meltpoint.models.log_f import LogF
from meltpoint.results.compose import compose, optimistic_of
from meltpoint.results.log_z import LogZBracket
from meltpoint.results.report import Interrupted, Report
from meltpoint.results.shown import choose_shown
from meltpoint.results.stages import OtherBase, StageSummary, alpha_of
from meltpoint.results.verdict import Needed, judge_target
from meltpoint.statistics.log_space import log_mean_exp

R = TypeVar("R", Report, LogZBracket)


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """What is evaluated, and what is known of it without any stage."""

    facts: ModelFacts
    settings: Settings
    log_f: LogF
    exact_log_z: float | None
    conventions: ConventionCheck | None
    fingerprints: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)

    def report(self, result: StageResult) -> Report:
        """The report of one stage; Interrupted with what AIS has if that is all."""
        stage, melted, starts = result.stage, result.melted, result.starts
        if not len(result.log_weights):
            raise KeyboardInterrupt
        log_z = log_z_of(result.log_weights)
        if melted is None:
            raise Interrupted(optimistic_of(log_z, self.log_f), log_z, stage.size.ais_chains)
        report = compose(
            model=self.facts.description,
            settings=replace(self.settings, base=stage.base.name, **vars(stage.size)),
            log_f=self.log_f,
            exact_log_z=self.exact_log_z,
            log_z=log_z,
            melted=melted,
            positions=stage.positions[result.finished],
            evidence=starts.evidence(log_z.log_weights) if starts else None,
            alpha=alpha_of_stage(self.settings, stage.number),
            starts_from=self.facts.raise_starts_from,
            densities=self.facts.densities,
        )
        states = stage.examples[result.finished]
        positions, differences = report.per_example.positions, report.per_example_differences
        return replace(
            report,
            chosen_base=stage.base,
            stage_number=stage.number,
            conventions=self.conventions,
            shown=choose_shown(self.facts.unit, positions, states, differences),
            fingerprints=dict(self.fingerprints),
            names=dict(self.names),
        )

    def finish(self, result: StageResult) -> "FinishedStage[Report]":
        """A complete stage with its report, and what one of several found by itself, without other starts."""
        stage, report = result.stage, self.report(result)
        in_stages = self.settings.budget is not None
        alone = self.report(replace(result, starts=None)) if result.starts and in_stages else report
        summary = StageSummary(
            **vars(stage.size),
            chain_steps=stage.size.work(self.facts.raise_passes),
            conservative=alone.conservative.value,
            optimistic=alone.optimistic.value,
            upper=alone.gap.value + alone.gap.margin(alpha_of(stage.number, 1 - self.settings.confidence)),
            half_width=half_width_of(alone),
            ess=alone.ess,
        )
        return FinishedStage(result, report, summary)


@dataclass(frozen=True, eq=False)
class FinishedStage(Generic[R]):
    """A complete stage, its report, and its summary: a `StageSummary` or a `LogZStage`."""

    result: StageResult
    report: R
    summary: Any

    @property
    def base(self) -> str:
        return self.result.stage.base.name

    @property
    def half_width(self) -> float:
        """Half the width of the interval, infinite where it is unknown."""
        width = half_width_of(self.report)
        return math.inf if math.isnan(width) else width

    @property
    def log_z(self) -> float:
        """AIS's estimate, a lower bound on average."""
        return float(log_mean_exp(self.log_weights))

    @property
    def log_weights(self) -> Floats:
        """AIS's log weights (chain,)."""
        return self.result.log_weights

    @property
    def better_base(self) -> str | None:
        """Name of another base that found more of log Z, if one did."""
        evidence = self.report.evidence
        better = evidence.better_base(self.log_weights) if evidence else None
        return better.name if better and better.name != self.base else None

    def lacks(self, other: "FinishedStage[R]") -> bool:
        """Whether the other stage is sure of more of log Z than the interval of this one allows."""
        (low, high), (other_low, other_high) = self.report.between, other.report.between
        return other_low > high if isinstance(self.report, LogZBracket) else low > other_high


def best_stages(finished: Sequence[FinishedStage[R]]) -> list[FinishedStage[R]]:
    """The stage with the smallest interval from every base, the base that found most of log Z first: the one to report.

    Log Z from every base is a lower bound, so the largest is nearest. Lower ends for log Z hold whatever was missed, so
    a stage that lacks what another one found is wrong, however small its interval is.
    """
    by_base: dict[str, FinishedStage[R]] = {}
    for stage in finished:
        if any(stage.lacks(other) for other in finished):
            continue
        best = by_base.get(stage.base, stage)
        by_base[stage.base] = min(best, stage, key=lambda each: each.half_width)
    return sorted(by_base.values(), key=lambda stage: -stage.log_z)


def report_of_best(finished: Sequence[FinishedStage[R]], needed: Needed | None = None) -> R:
    """The report of the best stage; it also says what the base with the next largest log Z found.

    Of a run in stages it says what all of them were, and whether the gap that was asked for was reached, or what that
    would need.
    """
    best, *others = best_stages(finished)
    report, target = best.report, best.report.settings.gap
    if target is not None:
        log_z = isinstance(report, LogZBracket)
        judged = judge_target(report.verdict, best.half_width, target, log_z=log_z, needed=needed)
        report = replace(report, verdict=judged)
    if isinstance(report, Report):
        if others:
            report = replace(report, other_base=_other_base(others[0]))
        if report.settings.budget is None:
            return report
    return replace(report, stages=tuple(stage.summary for stage in finished))


def with_rest(
    report: Report,
    friction: FrictionSchedule | None,
    samples: NDArray[Any] | None,
    seconds: dict[str, float],
    interrupted: bool,
) -> Report:
    """The report with what is known only when all stages are run."""
    shown = report.shown
    return replace(
        report,
        friction=friction,
        pilot=friction.pilot if friction else None,
        shown=shown if samples is None or shown is None else replace(shown, samples=samples),
        seconds=seconds,
        interrupted=interrupted,
    )


def half_width_of(report: Report | LogZBracket) -> float:
    """Half the width of the interval."""
    return (report.between[1] - report.between[0]) / 2


def alpha_of_stage(settings: Settings, number: int) -> float:
    """The probability with which a stage's claims may be wrong: all of it for the only one, else a part of it."""
    alpha = 1 - settings.confidence
    shared = settings.budget is not None or number > 0
    return alpha_of(number, alpha) if shared else alpha


def _other_base(stage: FinishedStage[Any]) -> OtherBase:
    report: Report = stage.report
    missed = report.evidence.missed(stage.log_weights) if report.evidence else None
    return OtherBase(
        base=stage.base,
        log_z=report.log_z.value,
        log_z_stderr=report.log_z.stderr,
        conservative=report.conservative.value,
        optimistic=report.optimistic.value,
        missing=missed.nats if missed else 0.0,
        missing_stderr=missed.nats_error if missed else 0.0,
    )
