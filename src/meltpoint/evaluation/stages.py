"""Stage after stage: one of the size that was given, or as many as a plan asks for, and the report of the best.

A stage's size depends on earlier stages and on the clock, its random numbers and its examples on nothing but its own
seed, so that its estimates are as unbiased as those of any run. Log Z from every base is a lower bound, so where no
base was asked for and another one found more of it, the next stage starts from there. What is reported is the stage
with the smallest interval, from the base that found most; all stages share the probability of being wrong. Decisions
and the time that was spent are kept with the run: a run that is continued takes the same decisions, a larger budget or
a smaller gap goes on from there, and a smaller budget or a larger gap reports what is there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import as_betas
from meltpoint.defaults import Settings
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.plan import Budget, Decision, Planner
from meltpoint.evaluation.prerequisites import Origin, Origins
from meltpoint.evaluation.settings import Watch
from meltpoint.evaluation.stage import (
    ANNEALING,
    ModelFacts,
    Size,
    Stage,
    StageResult,
    choose_examples,
    kept_stage,
    other_bases,
    run_stage,
    stage_seed,
    with_evidence,
)
from meltpoint.evaluation.stage_report import best_stage, report_of, summary_of, with_stages
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models import Model
from meltpoint.models.log_f import LogF
from meltpoint.results.report import Report
from meltpoint.results.stages import StageSummary
from meltpoint.runs.contents import decision_name, part_folder
from meltpoint.runs.run import Run

_MOST_STAGES = 12


@dataclass(frozen=True, eq=False)
class Context:
    """What all stages of an evaluation share; `betas` are those that were given, `base_is_free` if no base was."""

    model: Model
    facts: ModelFacts
    test: Bits
    settings: Settings
    betas: Floats | None
    log_f: LogF
    exact_log_z: float | None
    origins: Origins
    origin: Origin
    base_is_free: bool
    has_train: bool
    part: int
    run: Run
    clock: Clock

    def report(self, result: StageResult) -> Report:
        """The report of a stage."""
        origin = self.origins.at(result.stage.base.name)
        seconds = self.clock.seconds()
        return report_of(self.facts, self.settings, self.log_f, self.exact_log_z, origin, result, seconds)


@dataclass(frozen=True, eq=False)
class FinishedStage:
    """A complete stage, its report, and its summary, which is made without other starts."""

    result: StageResult
    report: Report
    summary: StageSummary

    @property
    def better_base(self) -> str | None:
        """Name of the base that found more of log Z, if one did."""
        log_z, starts = self.result.log_z, self.result.starts
        if starts is None or log_z is None:
            return None
        better = starts.evidence(log_z.log_weights).better_base(log_z.log_weights)
        return better and better.name


class Plan(Protocol):
    """Decides on stages one after the other."""

    @property
    def reached(self) -> bool:
        """Whether nothing more is needed."""
        ...

    def decide(self, number: int) -> Decision | None:
        """What to do for the stage of this number, None to stop."""
        ...

    def learn(self, result: StageResult, report: Report, better: str | None) -> None:
        """Take in a complete stage, and the base that found more of log Z, if one did and may be used."""
        ...


@dataclass(eq=False)
class GivenSize:
    """One stage of the size that was given, and a second one from another base that found more of log Z."""

    size: Size
    base: str | None
    reached = False

    def decide(self, number: int) -> Decision | None:
        """The stage of the base, once."""
        return None if self.base is None or number > 1 else Decision(self.size, self.base)

    def learn(self, result: StageResult, report: Report, better: str | None) -> None:
        """Go on from a base that found more."""
        self.base = better


def run_stages(context: Context, watch: Watch) -> tuple[Report, int]:
    """The report of the best stage, and its number.

    Ctrl-C gives that of the best complete one, or what is finished of the first.
    """
    s, clock = context.settings, context.clock
    run = context.run.inside(part_folder(context.part))
    budget = Budget(s.budget or math.inf, run, clock)
    plan = _plan(context, budget)
    finished: list[FinishedStage] = []
    unfinished: StageResult | None = None
    stopped = False
    for number in range(_MOST_STAGES):
        kept = run.recall(decision_name(number), Decision)
        decision = kept or plan.decide(number)
        if decision is None:
            break
        if kept is None:
            run.keep(decision_name(number), decision)
        try:
            stage = _stage(context, decision, number, finished)
        except KeyboardInterrupt:
            stopped = True
            break
        if plan.reached and not _is_kept(context, stage):
            break  # begun for a smaller gap than is asked for now
        result = _run(context, stage, finished)
        if s.budget is not None:
            budget.keep()
        stopped = result.interrupted
        if stopped or not result.complete:  # whatever the workers had finished by then
            unfinished = result
            break
        report = context.report(result)
        alone = context.report(replace(result, starts=None)) if result.starts else report
        summary = summary_of(alone, stage, context.facts.raise_passes)
        finished.append(FinishedStage(result, report, summary))
        if s.budget is not None:
            watch(summary)
        plan.learn(result, report, finished[-1].better_base if context.base_is_free else None)
    if finished:
        best = best_stage([stage.report for stage in finished])
    elif unfinished is not None:
        best = context.report(unfinished)
    else:
        raise KeyboardInterrupt
    friction = context.origins.at(best.settings.base).friction
    pilot = friction.pilot if friction else None
    best = replace(best, seconds=clock.seconds(), interrupted=stopped, friction=friction, pilot=pilot)
    if s.budget is not None:
        best = with_stages(best, [stage.summary for stage in finished])
    reported = [stage.report.ais_log_weights is best.ais_log_weights for stage in finished]
    return best, reported.index(True) if any(reported) else 0


def _plan(context: Context, budget: Budget) -> Plan:
    s, base = context.settings, context.origin.base.name
    if s.budget is None:
        return GivenSize(Size(s.steps, s.examples, s.chains, s.ais_chains), base)
    passes = context.facts.raise_passes
    return Planner(s, context.log_f, len(context.test), passes, base, budget, context.run)


def _stage(context: Context, decision: Decision, number: int, finished: Sequence[FinishedStage]) -> Stage:
    s, size = context.settings, decision.size
    origin = context.origins.at(decision.base)
    context.clock.lap("base and pilot" if origin.friction else "base")
    betas = context.betas
    if betas is None:
        betas = origin.friction.betas(size.steps) if origin.friction else as_betas(size.steps)
    seed = s.seed if s.budget is None and number == 0 else stage_seed(s.seed, number)
    # A second stage of a given size has the same examples, and chains of its own.
    first = finished[0].result.stage if s.budget is None and finished else None
    chosen = choose_examples(len(context.test), size.examples, seed) if first is None else first.positions
    return Stage(size, origin.base, betas, chosen, context.test[chosen], seed, number, context.part)


def _is_kept(context: Context, stage: Stage) -> bool:
    kept = kept_stage(stage.folder, context.facts, context.settings.precision, context.run)
    return kept is not None and kept.complete


def _run(context: Context, stage: Stage, finished: Sequence[FinishedStage]) -> StageResult:
    """A stage with what other starts found, if they are to be asked; without that where Ctrl-C came."""
    s, clock = context.settings, context.clock
    task = ANNEALING if s.budget is None else _task(stage, finished)
    result = run_stage(stage, context.model, s.precision, context.run, task)
    clock.add(_laps(result, clock.since_lap))
    if not s.evidence or not result.complete or result.interrupted:
        return result

    def bases() -> list[Base]:
        return [context.origins.base(name) for name in other_bases(stage.base.name, context.has_train)]

    result = with_evidence(result, context.model, s.precision, context.run, bases)
    clock.lap("evidence")
    return result


def _laps(result: StageResult, seconds: float) -> dict[str, float]:
    """Seconds of AIS and of RAISE, which shared the time that both took, and core seconds of earlier calls."""
    parts = {"AIS": result.ais, "RAISE": result.raised}
    own = {name: part.seconds - part.earlier for name, part in parts.items()}
    total = sum(own.values()) or 1.0
    earlier = sum(part.earlier for part in parts.values())
    laps = {name: seconds * share / total for name, share in own.items()}
    return {**laps, **({"earlier calls": earlier} if earlier else {})}


def _task(stage: Stage, finished: Sequence[FinishedStage]) -> str:
    """What progress calls a stage: which it is, and how close the two numbers are by now."""
    so_far = ""
    if finished:
        last = finished[-1].summary
        so_far = (
            f", RAISE {last.conservative:.2f}, AIS {last.optimistic:.2f}, "
            f"effective {last.ess:,.0f} of {last.ais_chains:,}"
        )
    return f"stage {stage.number + 1}, {stage.size.steps:,} steps{so_far}"
