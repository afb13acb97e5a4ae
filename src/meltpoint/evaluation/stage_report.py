"""Reports of single stages, and the report of an evaluation, which also describes its other stages."""

import math
from collections.abc import Sequence
from dataclasses import replace

from meltpoint.defaults import Settings
from meltpoint.estimators.evidence import Starts
from meltpoint.evaluation.prerequisites import Origin, shown_of
from meltpoint.models.log_f import LogF
from meltpoint.results.compose import compose, optimistic_of
from meltpoint.results.report import Interrupted, Report
from meltpoint.results.stages import OtherBase, StageSummary, alpha_of
from meltpoint.results.verdict import judge_target
from meltpoint.stages.stage import Stage, StageWeights, join_weights


def report_of(
    settings: Settings,
    log_f: LogF,
    exact_log_z: float | None,
    origin: Origin,
    parts: Sequence[tuple[Stage, StageWeights]],
    seconds: dict[str, float],
    starts: Starts | None = None,
    interrupted: bool = False,
) -> Report:
    """The report of one stage, or of the same stage of several parts; Interrupted with what AIS has if that is all.

    `starts` are the other starts that were asked, None if there were none.
    """
    stage = parts[0][0]
    weights = join_weights([weights for _, weights in parts]) if len(parts) > 1 else parts[0][1]
    ais_chains = sum(stage.ais_chains for stage, _ in parts)
    log_z, melted = weights.log_z(), weights.melted()
    if log_z is None:
        raise KeyboardInterrupt
    if melted is None:
        raise Interrupted(optimistic_of(log_z, log_f), log_z, ais_chains)
    used = replace(
        settings,
        base=stage.base.name,
        steps=stage.size.steps,
        examples=len(stage.examples),
        chains=sum(stage.chains for stage, _ in parts),
        ais_chains=ais_chains,
    )
    shared = settings.budget is not None or stage.index > 0
    alpha = 1 - settings.confidence
    report = compose(
        repr(stage.model),
        used,
        log_f,
        exact_log_z,
        log_z,
        melted,
        stage.positions[weights.examples],
        seconds,
        origin.friction.pilot if origin.friction else None,
        alpha_of(stage.look, alpha) if shared else alpha,
        interrupted,
        starts.evidence(log_z.log_weights) if starts else None,
        stage.earlier,
        stage.model.raise_starts_from,
        stage.model.units[0].n_states is None,
    )
    states = stage.examples[weights.examples]
    return replace(report, friction=origin.friction, shown=shown_of(report, stage.model, states))


def half_width_of(report: Report) -> float:
    """Half the width of the interval."""
    return (report.between[1] - report.between[0]) / 2


def summary_of(report: Report, stage: Stage) -> StageSummary:
    """What a stage was, and what it found by itself: the report is one without evidence."""
    alpha = alpha_of(stage.look, 1 - report.settings.confidence)
    return StageSummary(
        **vars(stage.size),
        chain_steps=stage.size.work(stage.model.raise_passes),
        conservative=report.conservative.value,
        optimistic=report.optimistic.value,
        upper=report.gap.value + report.gap.margin(alpha),
        half_width=half_width_of(report),
        ess=report.ess,
    )


def best_stage(reports: Sequence[Report]) -> Report:
    """The report of the stage with the smallest interval, among those from the base with the largest log Z."""
    by_base: dict[str, Report] = {}
    for report in reports:
        best = by_base.get(report.settings.base)
        if best is None or _width_for_choice(report) < _width_for_choice(best):
            by_base[report.settings.base] = report
    return most_found(list(by_base.values()))


def most_found(reports: Sequence[Report]) -> Report:
    """The report of the base with the largest log Z; it also says what the next one found."""
    best, *others = sorted(reports, key=lambda report: -report.log_z.value)
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
