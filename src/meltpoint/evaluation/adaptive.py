"""Stage after stage, until the interval for the model's value is small enough or the time is spent.

A stage's size depends on earlier stages and on the clock, its random numbers and its examples on nothing but its
own seed, so that its estimates are as unbiased as those of any run. What is reported is the stage with the smallest
interval; all stages share the probability of being wrong. Sizes and the time that was spent are kept with
the run: a run that is continued takes the same decisions, a larger budget or a smaller gap goes on from there, and a
smaller budget or a larger gap reports what is there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from meltpoint.annealing.schedule import as_betas
from meltpoint.evaluation.execute import Execution, StageResult, recall_weights, run_stage
from meltpoint.evaluation.plan import Measured, first_size, measure, next_size
from meltpoint.evaluation.prerequisites import Origin
from meltpoint.evaluation.stage import (
    Size,
    Stage,
    StageWeights,
    choose_examples,
    join_weights,
)
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.log_f import LogF
from meltpoint.randomness import Purpose, sequence
from meltpoint.report.compose import compose, optimistic_of
from meltpoint.report.duration import Clock
from meltpoint.report.report import Interrupted, Report
from meltpoint.report.settings import Settings
from meltpoint.report.stages import StageSummary, alpha_of
from meltpoint.report.verdict import judge_target
from meltpoint.runs.store import Store

Watch: TypeAlias = Callable[[StageSummary], None]
"""Called with each stage that is finished."""

_RESERVE = 0.95  # of the time that is left: what a stage takes is not known to the second
_MOST_STAGES = 12
_PLAIN_RATE = 20_000.0  # chain-steps per second, before any were timed


@dataclass(frozen=True, eq=False)
class Context:
    """What all stages of an evaluation share."""

    model: Model
    test: Bits
    origin: Origin
    settings: Settings
    log_f: LogF
    exact_log_z: float | None
    part: int

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


def run_once(context: Context, betas: Floats | None, execution: Execution, clock: Clock) -> Report:
    """The report of one stage of the size that was asked for."""
    s = context.settings
    stage = context.stage(Size(s.steps, s.examples, s.chains, s.ais_chains), betas, s.seed)
    result = run_stage(stage, execution)
    clock.add(result.seconds)
    return report_of(
        context.settings,
        context.log_f,
        context.exact_log_z,
        context.origin,
        [(stage, result.weights)],
        clock.seconds(),
        interrupted=not result.complete,
    )


def close_gap(context: Context, execution: Execution, clock: Clock, watch: Watch | None) -> Report:
    """The report of the best stage; those before it have decided its size. Ctrl-C gives the best complete one."""
    s = context.settings
    budget = _Budget(s.budget or math.inf, execution.store, f"part-{context.part}/spent", clock)
    planner = _Planner(context, budget)
    finished: list[tuple[Stage, StageWeights]] = []
    interrupted = False
    for index in range(_MOST_STAGES):
        reached = planner.known <= planner.target
        name = f"part-{context.part}/decision-{index}"
        kept = execution.store.read(name, {"size": ((4,), "i")})
        size = Size(*kept["size"].tolist()) if kept else None if reached else planner.decide(index)
        if size is None:
            break
        if kept is None:
            execution.store.write(name, {"size": np.array(astuple(size), np.int64)})
        stage = context.stage(size, None, _stage_seed(s.seed, index), index)
        if reached and not recall_weights(stage, execution.store).complete:
            break  # begun for a smaller gap than is asked for now
        told = _stage_name(index, size, planner.summaries)
        result = run_stage(stage, replace(execution, task=told))
        clock.add(result.seconds)
        budget.keep()
        if not result.complete:
            interrupted = True
            if not finished:
                finished.append((stage, result.weights))
            break
        finished.append((stage, result.weights))
        planner.learn(stage, result, execution.threads)
        if watch:
            watch(planner.summaries[-1])
    best = best_of(planner.summaries)
    report = report_of(
        s,
        context.log_f,
        context.exact_log_z,
        context.origin,
        finished[best : best + 1],
        clock.seconds(),
        interrupted=interrupted,
    )
    return with_stages(report, planner.summaries)


def report_of(
    settings: Settings,
    log_f: LogF,
    exact_log_z: float | None,
    origin: Origin,
    parts: Sequence[tuple[Stage, StageWeights]],
    seconds: dict[str, float],
    interrupted: bool = False,
) -> Report:
    """The report of one stage, or of the same stage of several parts; Interrupted with what AIS has if that is all."""
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
    in_stages = settings.budget is not None
    alpha = 1 - settings.confidence
    return compose(
        repr(stage.model),
        used,
        log_f,
        exact_log_z,
        log_z,
        melted,
        stage.positions[weights.examples],
        seconds,
        origin.friction.pilot if origin.friction else None,
        alpha_of(stage.index, alpha) if in_stages else alpha,
        interrupted,
    )


def summary_of(report: Report, stage: Stage) -> StageSummary:
    """What a stage was, and what it found."""
    alpha = alpha_of(stage.index, 1 - report.settings.confidence)
    return StageSummary(
        **vars(stage.size),
        chain_steps=stage.size.work(stage.model.raise_passes),
        conservative=report.conservative.value,
        optimistic=report.optimistic.value,
        upper=report.gap.value + report.gap.margin(alpha),
        half_width=(report.between[1] - report.between[0]) / 2,
        ess=report.ess,
    )


def best_of(stages: Sequence[StageSummary]) -> int:
    """Which stage is reported: that with the smallest interval, the first without any."""
    return int(np.argmin([stage.half_width for stage in stages])) if stages else 0


def with_stages(report: Report, stages: Sequence[StageSummary]) -> Report:
    """The report of a run in stages: what they were, and whether the gap that was asked for was reached."""
    target, verdict = report.settings.gap, report.verdict
    if target is not None and stages:
        verdict = judge_target(verdict, min(stage.half_width for stage in stages), target)
    return replace(report, stages=tuple(stages), verdict=verdict)


class _Budget:
    """Seconds that are left of a budget, those of earlier calls of the same run counted."""

    def __init__(self, seconds: float, store: Store, name: str, clock: Clock) -> None:
        self._store, self._name, self._clock = store, name, clock
        kept = store.read(name, {"seconds": ((), "f")})
        self._before = float(kept["seconds"]) if kept else 0.0
        self._seconds = seconds

    @property
    def left(self) -> float:
        """Seconds."""
        return self._seconds - self._before - self._clock.elapsed

    def keep(self) -> None:
        """Write down what was spent by now."""
        self._store.write(self._name, {"seconds": np.array(self._before + self._clock.elapsed)})


class _Planner:
    """What the stages so far have taught, and what follows for the next."""

    def __init__(self, context: Context, budget: _Budget) -> None:
        self._context = context
        self._budget = budget
        self._segments = context.model.raise_passes
        self._rate = _PLAIN_RATE
        self._measured: Measured | None = None
        self.target = context.settings.gap or 0.0
        self.summaries: list[StageSummary] = []

    @property
    def known(self) -> float:
        """Half the width of the smallest interval so far."""
        return min((summary.half_width for summary in self.summaries), default=math.inf)

    def decide(self, index: int) -> Size | None:
        """The size of the next stage, None to stop."""
        affordable = self._rate * _RESERVE * self._budget.left
        available = len(self._context.test)
        if self._measured is None:
            # Where log f is estimated, starts are drawn, and only more chains make that noise smaller.
            chains = 4 if self._context.log_f.stderrs.any() else 2
            return first_size(available, self._segments, affordable, chains)
        alpha = alpha_of(index, 1 - self._context.settings.confidence)
        sigmas = NormalDist().inv_cdf(1 - alpha / 2)
        return next_size(
            self._measured, self.target, sigmas, self.known, available, self._segments, affordable
        )

    def learn(self, stage: Stage, result: StageResult, threads: int) -> None:
        """Take in what a complete stage has measured."""
        context, weights = self._context, result.weights
        log_z, melted = weights.log_z(), weights.melted()
        assert log_z is not None, "a complete stage has both"
        assert melted is not None, "a complete stage has both"
        report = report_of(
            context.settings, context.log_f, None, context.origin, [(stage, weights)], seconds={}
        )
        self.summaries.append(summary_of(report, stage))
        measured = measure(
            melted,
            context.log_f.values[stage.positions],
            log_z,
            stage.size.steps,
            heated=self._segments > 1,
            particles=context.settings.particles,
            fixed_error=report.log_f_error,
        )
        self._measured = measured.after(self._measured)
        laps = dict(result.seconds)
        # What an earlier, interrupted call has computed took its cores' seconds.
        seconds = laps.pop("earlier calls", 0.0) / threads + sum(laps.values())
        self._rate = stage.size.work(self._segments) / max(seconds, 1e-3)


def _stage_seed(seed: int, index: int) -> int:
    # Nothing of an earlier stage may come back: neither its chains' noise nor its choice of examples.
    return int(sequence(seed, Purpose.STAGE, index).generate_state(1, np.uint64)[0])


def _stage_name(index: int, size: Size, summaries: Sequence[StageSummary]) -> str:
    """What progress calls a stage: which it is, and how close the two numbers are by now."""
    so_far = ""
    if summaries:
        last = summaries[-1]
        so_far = (
            f", RAISE {last.conservative:.2f}, AIS {last.optimistic:.2f}, "
            f"effective {last.ess:,.0f} of {last.ais_chains:,}"
        )
    return f"stage {index + 1}, {size.steps:,} steps{so_far}"
