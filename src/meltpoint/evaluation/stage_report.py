"""Reports of single stages, and the report of an evaluation, which also describes its other stages."""

import math
from collections.abc import Sequence
from dataclasses import replace

from meltpoint.defaults import Settings
from meltpoint.evaluation.prerequisites import Origin
from meltpoint.evaluation.stage import ModelFacts, Stage, StageResult
from meltpoint.models.log_f import LogF
from meltpoint.results.compose import compose, optimistic_of
from meltpoint.results.report import Interrupted, Report
from meltpoint.results.shown import choose_shown
from meltpoint.results.stages import OtherBase, StageSummary, alpha_of
from meltpoint.results.verdict import judge_target


def report_of(
    facts: ModelFacts,
    settings: Settings,
    log_f: LogF,
    exact_log_z: float | None,
    origin: Origin,
    result: StageResult,
    seconds: dict[str, float],
) -> Report:
    """The report of one stage; Interrupted with what AIS has if that is all."""
    stage, log_z, melted, starts = result.stage, result.log_z, result.melted, result.starts
    if log_z is None:
        raise KeyboardInterrupt
    if melted is None:
        raise Interrupted(optimistic_of(log_z, log_f), log_z, stage.size.ais_chains)
    shared = settings.budget is not None or stage.number > 0
    alpha = 1 - settings.confidence
    report = compose(
        facts.description,
        replace(settings, base=stage.base.name, **vars(stage.size)),
        log_f,
        exact_log_z,
        log_z,
        melted,
        stage.positions[result.finished],
        seconds,
        origin.friction.pilot if origin.friction else None,
        alpha_of(stage.number, alpha) if shared else alpha,
        result.interrupted,
        starts.evidence(log_z.log_weights) if starts else None,
        starts_from=facts.raise_starts_from,
        densities=facts.densities,
    )
    states = stage.examples[result.finished]
    differences = report.per_example_differences
    shown = choose_shown(facts.unit, report.per_example.positions, states, differences)
    return replace(report, friction=origin.friction, shown=shown)


def half_width_of(report: Report) -> float:
    """Half the width of the interval."""
    return (report.between[1] - report.between[0]) / 2


def summary_of(report: Report, stage: Stage, passes: int) -> StageSummary:
    """What a stage was, and what it found by itself: the report is one without evidence."""
    alpha = alpha_of(stage.number, 1 - report.settings.confidence)
    return StageSummary(
        **vars(stage.size),
        chain_steps=stage.size.work(passes),
        conservative=report.conservative.value,
        optimistic=report.optimistic.value,
        upper=report.gap.value + report.gap.margin(alpha),
        half_width=half_width_of(report),
        ess=report.ess,
    )


def best_stage(reports: Sequence[Report]) -> Report:
    """The report of the stage with the smallest interval, among those from the base with the largest log Z.

    It also says what the base with the next largest found.
    """
    by_base: dict[str, Report] = {}
    for report in reports:
        best = by_base.get(report.settings.base)
        if best is None or _width_for_choice(report) < _width_for_choice(best):
            by_base[report.settings.base] = report
    best, *others = sorted(by_base.values(), key=lambda report: -report.log_z.value)
    return replace(best, other_base=_other_base(others[0])) if others else best


def with_stages(report: Report, stages: Sequence[StageSummary]) -> Report:
    """The report of a run in stages: what they were, and whether the gap that was asked for was reached."""
    target, verdict = report.settings.gap, report.verdict
    if target is not None and stages:
        verdict = judge_target(verdict, half_width_of(report), target)
    return replace(report, stages=tuple(stages), verdict=verdict)


def _width_for_choice(report: Report) -> float:
    width = half_width_of(report)
    return math.inf if math.isnan(width) else width


def _other_base(report: Report) -> OtherBase:
    missed = report.evidence.missed(report.ais_log_weights) if report.evidence else None
    return OtherBase(
        base=report.settings.base,
        log_z=report.log_z.value,
        log_z_stderr=report.log_z.stderr,
        conservative=report.conservative.value,
        optimistic=report.optimistic.value,
        missing=missed.nats if missed else 0.0,
        missing_stderr=missed.nats_error if missed else 0.0,
    )
