"""One stage of the size that was asked for, and a second one from another base where that found more of log Z.

Log Z from every base is a lower bound, so the larger one is nearer to the truth. The second stage has the same examples
and the same size, but chains of its own: what they say does not depend on why they were run. Its base is kept with the
run, and a run that is continued turns to it again.
"""

from dataclasses import replace

import numpy as np

from meltpoint.estimators.evidence import Starts
from meltpoint.evaluation.adaptive import Context, ask_others, better_base, stage_seed
from meltpoint.evaluation.stage_report import most_found, report_of
from meltpoint.models.checks import Floats
from meltpoint.results.duration import Clock
from meltpoint.results.report import Report
from meltpoint.runs.contents import turn_name
from meltpoint.runs.store import Store
from meltpoint.stages.execute import Execution, run_stage
from meltpoint.stages.stage import Size, Stage, StageWeights


def run_once(context: Context, betas: Floats | None, execution: Execution, clock: Clock) -> Report:
    """The report of one stage of the size that was asked for, or of a second one from a base that found more."""
    s = context.settings
    size = Size(s.steps, s.examples, s.chains, s.ais_chains)
    stage = context.stage(size, betas, s.seed)
    weights, starts, interrupted = _run(context, stage, execution, clock)
    finished = [(context.origin, stage, weights, starts)]
    base = (
        None if interrupted or starts is None else _base_to_turn_to(context, weights, starts, execution.store)
    )
    if base is not None:
        try:
            second = replace(context, origin=context.origin_at(base))
            clock.lap("base and pilot")
            first = context.origin_at(stage.base.name)
            other = second.stage(size, betas, stage_seed(s.seed, 1), index=1)
            other = replace(other, examples=stage.examples, positions=stage.positions)
            weights, starts, interrupted = _run(second, other, execution, clock)
            finished = [(first, *finished[0][1:]), (second.origin, other, weights, starts)]
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


def turned_to(store: Store, part: int) -> str | None:
    """Name of the base that a part of a run has turned to, if it has."""
    kept = store.read(turn_name(part), {"base": ((), "U")})
    return str(kept["base"]) if kept else None


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


def _base_to_turn_to(context: Context, weights: StageWeights, starts: Starts, store: Store) -> str | None:
    """Name of the base to turn to: as it was decided before, or if the base was not given and another found more."""
    kept = turned_to(store, context.part)
    better = better_base(context, weights, starts) if kept is None else None
    if better is not None:
        store.write(turn_name(context.part), {"base": np.array(better)})
    return kept or better
