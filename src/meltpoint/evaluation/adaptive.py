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

import numpy as np

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import as_betas
from meltpoint.defaults import Settings
from meltpoint.estimators.evidence import Starts
from meltpoint.evaluation.evidence import gather_evidence, recall_evidence
from meltpoint.evaluation.execute import Execution, StageResult, recall_weights, run_stage
from meltpoint.evaluation.plan import Measured, first_size, measure, next_size
from meltpoint.evaluation.prerequisites import Origin, shown_of
from meltpoint.evaluation.settings import Watch
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
from meltpoint.report.stages import StageSummary, alpha_of
from meltpoint.report.verdict import judge_target
from meltpoint.runs.store import Store

_RESERVE = 0.95  # of the time that is left: what a stage takes is not known to the second
_RESERVE_FOR_EVIDENCE = 0.8  # … if other starts are to be asked after it
_MOST_WIDENING = 3.0
_MOST_STAGES = 12
_PLAIN_RATE = 20_000.0  # chain-steps per second, before any were timed


@dataclass(frozen=True, eq=False)
class Context:
    """What all stages of an evaluation share.

    `other_bases` are those to ask besides one of this name, `origin_at` is the origin at a base of this name;
    `base_is_free` if no base was asked for.
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


def close_gap(context: Context, execution: Execution, clock: Clock, watch: Watch | None) -> Report:
    """The report of the best stage; those before it have decided its size. Ctrl-C gives the best complete one."""
    s = context.settings
    budget = _Budget(s.budget or math.inf, execution.store, f"part-{context.part}/spent", clock)
    planner = _Planner(context, budget)
    finished: list[tuple[Stage, StageWeights]] = []
    asked: list[Starts | None] = []
    interrupted = False

    def ask(k: int) -> bool:
        """Ask other starts about a stage, and learn how wide its interval is with what they say."""
        asked[k], stopped = ask_others(context, *finished[k], execution, clock)
        budget.keep()
        planner.learn_evidence(k, *finished[k], asked[k])
        return stopped

    for index in range(_MOST_STAGES):
        reached = planner.known <= planner.target
        name = f"part-{context.part}/decision-{index}"
        kept = execution.store.read(name, {"size": ((4,), "i")})
        size = Size(*kept["size"].tolist()) if kept else None if reached else planner.decide(index)
        if size is None:
            break
        if kept is None:
            execution.store.write(name, {"size": np.array(astuple(size), np.int64)})
        stage = context.stage(size, None, stage_seed(s.seed, index), index)
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
        asked.append(recall_evidence(stage, execution.store) if s.evidence else None)
        planner.learn(stage, result, execution.threads, asked[-1])
        # Asked only where it may be the last stage: the others are not reported.
        if s.evidence and asked[-1] is None and planner.half_widths[-1] <= planner.target:
            interrupted = ask(index)
        if watch:
            watch(planner.summaries[-1])
        if interrupted:
            break
    best = best_of(planner.half_widths)
    while s.evidence and asked and asked[best] is None and not interrupted:
        interrupted = ask(best)
        best = best_of(planner.half_widths)
    report = report_of(
        s,
        context.log_f,
        context.exact_log_z,
        context.origin,
        finished[best : best + 1],
        clock.seconds(),
        starts=asked[best] if asked else None,
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
        alpha_of(stage.index, alpha) if shared else alpha,
        interrupted,
        starts.evidence(log_z.log_weights) if starts else None,
    )
    states = stage.examples[weights.examples]
    return replace(report, friction=origin.friction, shown=shown_of(report, stage.model, states))


def half_width_of(report: Report) -> float:
    """Half the width of the interval."""
    return (report.between[1] - report.between[0]) / 2


def summary_of(report: Report, stage: Stage) -> StageSummary:
    """What a stage was, and what it found by itself: the report is one without evidence."""
    alpha = alpha_of(stage.index, 1 - report.settings.confidence)
    return StageSummary(
        **vars(stage.size),
        chain_steps=stage.size.work(stage.model.raise_passes),
        conservative=report.conservative.value,
        optimistic=report.optimistic.value,
        upper=report.gap.value + report.gap.margin(alpha),
        half_width=half_width_of(report),
        ess=report.ess,
    )


def best_of(half_widths: Sequence[float]) -> int:
    """Which stage is reported: that with the smallest interval, the first without any."""
    return int(np.argmin(half_widths)) if half_widths else 0


def with_stages(report: Report, stages: Sequence[StageSummary]) -> Report:
    """The report of a run in stages: what they were, and whether the gap that was asked for was reached."""
    target, verdict = report.settings.gap, report.verdict
    if target is not None and stages:
        verdict = judge_target(verdict, half_width_of(report), target)
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
        self._predicted = math.inf
        self._reserve = _RESERVE_FOR_EVIDENCE if context.settings.evidence else _RESERVE
        self._measured: Measured | None = None
        self.target = context.settings.gap or 0.0
        self.summaries: list[StageSummary] = []
        self.half_widths: list[
            float
        ] = []  # of the same stages, with what other starts say where they were asked

    @property
    def known(self) -> float:
        """Half the width of the smallest interval so far."""
        return min(self.half_widths, default=math.inf)

    def decide(self, index: int) -> Size | None:
        """The size of the next stage, None to stop."""
        affordable = self._rate * self._reserve * self._budget.left
        available = len(self._context.test)
        if self._measured is None:
            # Where log f is estimated, starts are drawn, and only more chains make that noise smaller.
            chains = 4 if not self._context.log_f.is_exact else 2
            return first_size(available, self._segments, affordable, chains)
        return next_size(
            self._measured,
            self.target / self._widening,
            self._sigmas(index),
            self.known / self._widening,
            available,
            self._segments,
            affordable,
        )

    @property
    def _widening(self) -> float:
        """How much wider the last interval was than its size had let expect: skewed weights, and what they lack."""
        wider = self.half_widths[-1] / self._predicted
        return min(_MOST_WIDENING, max(1.0, wider)) if math.isfinite(wider) else 1.0

    def _sigmas(self, index: int) -> float:
        alpha = alpha_of(index, 1 - self._context.settings.confidence)
        return NormalDist().inv_cdf(1 - alpha / 4)

    def learn_evidence(self, k: int, stage: Stage, weights: StageWeights, starts: Starts | None) -> None:
        """Take in what other starts say of stage k."""
        context = self._context
        self.half_widths[k] = half_width_of(
            report_of(
                context.settings, context.log_f, None, context.origin, [(stage, weights)], {}, starts=starts
            )
        )

    def learn(self, stage: Stage, result: StageResult, threads: int, starts: Starts | None) -> None:
        """Take in what a complete stage has measured, and what other starts say of it, if they were asked before."""
        context, weights = self._context, result.weights
        log_z, melted = weights.log_z(), weights.melted()
        assert log_z is not None, "a complete stage has both"
        assert melted is not None, "a complete stage has both"
        report = report_of(
            context.settings, context.log_f, None, context.origin, [(stage, weights)], seconds={}
        )
        self.summaries.append(summary_of(report, stage))
        self.half_widths.append(half_width_of(report))
        if starts is not None:
            self.learn_evidence(stage.index, stage, weights, starts)
        measured = measure(
            melted,
            context.log_f.values[stage.positions],
            log_z,
            stage.size.steps,
            heated=self._segments > 1,
            particles=context.settings.particles,
            fixed_error=report.log_f_error,
        )
        size = stage.size
        self._predicted = measured.half_widths(
            size.steps, size.chains, size.ais_chains, np.array([size.examples]), self._sigmas(stage.index)
        ).item()
        self._measured = measured.after(self._measured)
        laps = dict(result.seconds)
        # What an earlier, interrupted call has computed took its cores' seconds.
        seconds = laps.pop("earlier calls", 0.0) / threads + sum(laps.values())
        self._rate = stage.size.work(self._segments) / max(seconds, 1e-3)


def stage_seed(seed: int, index: int) -> int:
    """The seed of a stage of an evaluation."""
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
