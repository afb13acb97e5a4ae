"""One stage of the size that was asked for, and a second one from another base where that found more of log Z.

Log Z from every base is a lower bound, so the larger one is nearer to the truth. The second stage has the same examples
and the same size, but chains of its own: what they say does not depend on why they were run. Its base is kept with the
run, and a run that is continued turns to it again.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meltpoint.estimators.evidence import Starts
from meltpoint.evaluation.adaptive import Context, ask_others, report_of, stage_seed
from meltpoint.evaluation.execute import Execution, run_stage
from meltpoint.evaluation.prerequisites import sum_pilots
from meltpoint.evaluation.stage import Size, Stage, StageWeights
from meltpoint.models.checks import Floats
from meltpoint.report.duration import Clock
from meltpoint.report.report import Report
from meltpoint.report.stages import OtherBase
from meltpoint.runs.store import Store


def run_once(context: Context, betas: Floats | None, execution: Execution, clock: Clock) -> Report:
    """The report of one stage of the size that was asked for, or of a second one from a base that found more."""
    s = context.settings
    size = Size(s.steps, s.examples, s.chains, s.ais_chains)
    stage = context.stage(size, betas, s.seed)
    weights, starts, interrupted = _run(context, stage, execution, clock)
    finished = [(context.origin, stage, weights, starts)]
    base = None if interrupted or starts is None else _better_base(context, weights, starts, execution.store)
    if base is not None:
        try:
            second = replace(context, origin=context.origin_at(base))
            clock.lap("base and pilot")
            origins = sum_pilots((context.origin, second.origin))
            other = second.stage(size, betas, stage_seed(s.seed, 1), index=1)
            other = replace(other, examples=stage.examples, positions=stage.positions)
            weights, starts, interrupted = _run(second, other, execution, clock)
            finished = [(origins[0], *finished[0][1:]), (origins[1], other, weights, starts)]
        except KeyboardInterrupt:
            interrupted = True
        if interrupted:
            finished = finished[:1]
    return most_found(
        [
            report_of(
                s,
                context.log_f,
                context.exact_log_z,
                origin,
                [(own, weights)],
                clock.seconds(),
                starts=starts,
                interrupted=interrupted,
            )
            for origin, own, weights, starts in finished
        ]
    )


def most_found(reports: Sequence[Report]) -> Report:
    """Of the reports of one or two bases that with the larger log Z; it says what the other one found."""
    best = max(reports, key=lambda report: report.log_z.value)
    others = [_other_base(report) for report in reports if report is not best]
    return replace(best, other_base=others[0]) if others else best


def turned_to(store: Store, part: int) -> str | None:
    """Name of the base that a part of a run has turned to, if it has."""
    kept = store.read(turn_name(part), {"base": ((), "U")})
    return str(kept["base"]) if kept else None


def turn_name(part: int) -> str:
    """Name of the chunk with that base in a run's folder."""
    return f"part-{part}/turn"


def _run(
    context: Context, stage: Stage, execution: Execution, clock: Clock
) -> tuple[StageWeights, Starts | None, bool]:
    """Weights of a stage, what other starts say of it, and whether Ctrl-C came."""
    result = run_stage(stage, execution)
    clock.add(result.seconds)
    starts, interrupted = None, not result.complete
    if context.settings.evidence:
        starts, interrupted = ask_others(context, stage, result.weights, execution, clock, interrupted)
    return result.weights, starts, interrupted


def _better_base(context: Context, weights: StageWeights, starts: Starts, store: Store) -> str | None:
    """Name of the base to turn to: as it was decided before, or if the base was not given and another found more."""
    kept = turned_to(store, context.part)
    log_z = weights.log_z()
    if kept is not None or not context.base_is_free or log_z is None:
        return kept
    better = starts.evidence(log_z.log_weights).better_base(log_z.log_weights)
    if better is None:
        return None
    store.write(turn_name(context.part), {"base": np.array(better.name)})
    return better.name


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
