"""Stage after stage, until the interval for the model's value is small enough or the time is spent.

A stage's size depends on earlier stages and on the clock, its random numbers and its examples on nothing but its
own seed, so that its estimates are as unbiased as those of any run. A stage that was too small by little grows: it gets
more chains and examples, and keeps those that it has. What is reported is the stage with the smallest interval, from
the base that found most of log Z; all looks at weights share the probability of being wrong. Decisions and the time
that was spent are kept with the run: a run that is continued takes the same decisions, a larger budget or a smaller gap
goes on from there, and a smaller budget or a larger gap reports what is there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import as_betas
from meltpoint.defaults import Settings
from meltpoint.estimators.evidence import Starts
from meltpoint.evaluation.planner import PLAIN_RATE, Budget, Look, Planner
from meltpoint.evaluation.prerequisites import Origin
from meltpoint.evaluation.settings import Watch
from meltpoint.evaluation.stage_report import best_stage, report_of, summary_of, with_stages
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.log_f import LogF
from meltpoint.randomness import Purpose, sequence
from meltpoint.results.duration import Clock
from meltpoint.results.report import Report
from meltpoint.runs.contents import spent_name
from meltpoint.stages.decisions import keep_decision, recall_decision
from meltpoint.stages.evidence import gather_evidence, recall_evidence
from meltpoint.stages.execute import Execution, recall_weights, run_stage
from meltpoint.stages.stage import (
    Size,
    Stage,
    StageWeights,
    choose_examples,
    choose_more_examples,
    grow_stage,
)

_MOST_LOOKS = 12


@dataclass(frozen=True, eq=False)
class Context:
    """What all stages of an evaluation share.

    `other_bases` are those to ask besides one of this name, `origin_at` is the origin at a base of this name, whose
    pilot has the chain-steps of all that were run by then; `base_is_free` if no base was asked for.
    """

    model: Model
    test: Bits
    origin: Origin
    settings: Settings
    log_f: LogF
    exact_log_z: float | None
    part: int
    other_bases: Callable[[str], Sequence[Base]]
    origin_at: Callable[[str], Origin]
    base_is_free: bool

    def stage(self, size: Size, betas: Floats | None, seed: int, index: int = 0) -> Stage:
        """A stage of this size, along the given betas or those of the schedule."""
        friction = self.origin.friction
        if betas is None:
            betas = friction.betas(size.steps) if friction else as_betas(size.steps)
        chosen = choose_examples(len(self.test), size.examples, seed)
        return Stage(
            model=self.model,
            examples=self.test[chosen],
            positions=chosen,
            base=self.origin.base,
            betas=betas,
            chains=size.chains,
            ais_chains=size.ais_chains,
            seed=seed,
            precision=self.settings.precision,  # pyright: ignore[reportArgumentType]
            index=index,
            part=self.part,
        )

    def grown(self, stage: Stage, size: Size, look: int) -> Stage:
        """The stage with as many examples and AIS chains as this size has."""
        more = size.examples - len(stage.examples)
        chosen = choose_more_examples(len(self.test), stage.positions, more, stage.seed)
        return grow_stage(stage, size.ais_chains, self.test[chosen], chosen, look)


def ask_others(
    context: Context,
    stage: Stage,
    weights: StageWeights,
    execution: Execution,
    clock: Clock,
    interrupted: bool = False,
) -> tuple[Starts | None, bool]:
    """What other starts found for a stage, and whether Ctrl-C came before; an interrupted stage has what is kept."""
    if interrupted:
        return recall_evidence(stage, execution.store), True
    try:
        starts = gather_evidence(stage, weights, lambda: context.other_bases(stage.base.name), execution)
    except KeyboardInterrupt:
        return None, True
    finally:
        clock.lap("evidence")
    return starts, False


def better_base(context: Context, weights: StageWeights, starts: Starts | None) -> str | None:
    """Name of the base to turn to: if none was asked for and another one found more of log Z."""
    log_z = weights.log_z()
    if starts is None or log_z is None or not context.base_is_free:
        return None
    better = starts.evidence(log_z.log_weights).better_base(log_z.log_weights)
    return better and better.name


def close_gap(
    context: Context, execution: Execution, clock: Clock, watch: Watch | None, rate: float = PLAIN_RATE
) -> Report:
    """The report of the best stage; those before it have decided its size. Ctrl-C gives the best complete one.

    `rate` are the chain-steps per second that are expected until stages were timed.
    """
    s, store = context.settings, execution.store
    budget = Budget(s.budget or math.inf, store, spent_name(context.part), clock)
    planner = Planner(
        settings=s,
        log_f=context.log_f,
        test_examples=len(context.test),
        passes=context.model.raise_passes,
        base=context.origin.base.name,
        budget=budget,
        rate=rate,
    )
    unfinished: tuple[Stage, StageWeights] | None = None
    stopped = False
    for index in range(_MOST_LOOKS):
        kept = recall_decision(store, context.part, index)
        decision = kept or (None if planner.reached else planner.decide(index))
        if decision is None:
            break
        if kept is None:
            keep_decision(store, context.part, index, decision)
        known = planner.latest(decision.grows) if decision.grows is not None else None
        try:
            own = context
            if decision.base not in ("", context.origin.base.name):
                own = replace(context, origin=context.origin_at(decision.base))
                clock.lap("base and pilot")
            stage = (
                own.stage(decision.size, None, stage_seed(s.seed, index), index)
                if known is None
                else own.grown(known.stage, decision.size, index)
            )
        except KeyboardInterrupt:
            stopped = True
            break
        before = known and known.weights
        if planner.reached and not recall_weights(stage, store, before).complete:
            break  # begun for a smaller gap than is asked for now
        result = run_stage(stage, replace(execution, task=_stage_name(index, stage, planner.looks)), before)
        clock.add(result.seconds)
        budget.keep()
        if not result.complete:
            stopped, unfinished = True, (stage, result.weights)
            break
        planner.time(stage, result.seconds, execution.threads)
        starts = known.starts if known else None
        if s.evidence and starts is None:
            starts, stopped = ask_others(context, stage, result.weights, execution, clock)
            budget.keep()
        found = (s, context.log_f, context.exact_log_z, own.origin, [(stage, result.weights)], {})
        summary = summary_of(report_of(*found), stage)
        report = report_of(*found, starts=starts)
        planner.learn(Look(stage, result.weights, starts, report, summary))
        if watch:
            watch(summary)
        if stopped:
            break
        planner.turn(better_base(context, result.weights, starts))
    looks = planner.looks
    if not looks and unfinished is None:
        raise KeyboardInterrupt
    if looks:
        best = best_stage([look.report for look in looks])
    else:
        assert unfinished is not None, "it was checked above"
        best = report_of(s, context.log_f, context.exact_log_z, context.origin, [unfinished], {})
    friction = context.origin_at(best.settings.base).friction
    best = replace(
        best,
        seconds=clock.seconds(),
        interrupted=stopped,
        friction=friction,
        pilot=friction.pilot if friction else None,
    )
    return with_stages(best, [look.summary for look in looks])


def stage_seed(seed: int, index: int) -> int:
    """The seed of a stage of an evaluation."""
    # Nothing of an earlier stage may come back: neither its chains' noise nor its choice of examples.
    return int(sequence(seed, Purpose.STAGE, index).generate_state(1, np.uint64)[0])


def _stage_name(index: int, stage: Stage, looks: Sequence[Look]) -> str:
    """What progress calls a stage: which it is, and how close the two numbers are by now."""
    so_far = ""
    if looks:
        last = looks[-1].summary
        so_far = (
            f", RAISE {last.conservative:.2f}, AIS {last.optimistic:.2f}, "
            f"effective {last.ess:,.0f} of {last.ais_chains:,}"
        )
    grown = f", now {stage.ais_chains:,} chains" if stage.earlier else ""
    return f"stage {index + 1}, {stage.size.steps:,} steps{grown}{so_far}"
