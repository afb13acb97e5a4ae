"""Stage after stage: one of the size that was given, or as many as a plan asks for.

A stage's size depends on earlier stages and on the clock, its random numbers and its examples on nothing but its own
seed, so that its estimates are as unbiased as those of any run. Log Z from every base is a lower bound, so where no
base was asked for and another one found more of it, the next stage starts from there. What is reported is the stage
with the smallest interval, from the base that found most; all stages share the probability of being wrong. Decisions
and the time that was spent are kept with the run: a run that is continued takes the same decisions, a larger budget or
a smaller gap goes on from there, and a smaller budget or a larger gap reports what is there.
"""

import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import as_betas
from meltpoint.defaults import Settings
from meltpoint.estimators.evidence import Starts
from meltpoint.estimators.starts import Computation, ask_starts
from meltpoint.evaluation.plan import Decision, Planner
from meltpoint.evaluation.prerequisites import Clock, Origins
from meltpoint.evaluation.reporting import FinishedStage, R, report_of_best
from meltpoint.evaluation.stage import (
    Size,
    Stage,
    StageResult,
    choose_examples,
    kept_stage,
    run_stage,
    stage_seed,
)
from meltpoint.layers.unit import Floats, States
from meltpoint.models import Model
from meltpoint.results.verdict import Needed
from meltpoint.results.words import EARLIER
from meltpoint.runs.contents import EVIDENCE, SPENT, decision_name, part_folder
from meltpoint.runs.run import Run

_log = logging.getLogger("meltpoint")

_MOST_STAGES = 12


@dataclass(eq=False)
class GivenSize:
    """One stage of the size that was given, and a second one from another base that found more of log Z."""

    size: Size
    base: str | None
    reached = False
    needed = None

    def decide(self, number: int, _seconds: float) -> Decision | None:
        return None if self.base is None or number > 1 else Decision(self.size, self.base)

    def learn(self, _finished: FinishedStage[Any], better: str | None) -> None:
        self.base = better


@dataclass(eq=False, kw_only=True)
class Evaluation(ABC, Generic[R]):
    """What all stages of an evaluation share, and its stages one after the other.

    `betas` are those that were given; `base` is that of the first stage, `base_is_free` if none was asked for. `test`
    (example, visible unit) are the states of the test set. A first stage of given size has the seed `given_seed`.
    `watch` is called with the summary of each finished one of several stages.
    """

    model: Model
    settings: Settings
    betas: Floats | None
    origins: Origins
    base: str
    base_is_free: bool
    test: States
    given_seed: int
    run: Run
    clock: Clock
    watch: Callable[[Any], None] | None
    part: int = 0
    log_f_is_exact: bool = True
    finished: list[FinishedStage[R]] = field(default_factory=list)
    stopped: bool = False
    needed: Needed | None = None

    @abstractmethod
    def other_starts(self, stage: Stage) -> tuple[list[tuple[Base, Floats]], dict[str, int]]:
        """Bases with their betas for other starts, and options of `ask_starts`."""

    @abstractmethod
    def task(self, stage: Stage) -> str:
        """What progress calls a stage."""

    @abstractmethod
    def finish(self, result: StageResult) -> FinishedStage[R]:
        """A stage with its report, which after Ctrl-C is made of what was finished."""

    def run_stages(self) -> R:
        """Run all stages: the report of the best one, or after Ctrl-C of what is finished of the first one."""
        unfinished = self._run_stages()
        if self.finished:
            return report_of_best(self.finished, self.needed)
        if unfinished is None:
            raise KeyboardInterrupt
        return self.finish(unfinished).report

    def _run_stages(self) -> StageResult | None:
        """Ctrl-C ends them; what is finished of the stage under way is returned."""
        s, run = self.settings, self.run.inside(part_folder(self.part))
        size = Size(s.steps, s.examples, s.chains, s.ais_chains) if s.budget is None else None
        plan = self._planner() if size is None else GivenSize(size, self.base)
        spent_before = run.recall(SPENT, float) or 0.0
        for number in range(_MOST_STAGES):
            kept = run.recall(decision_name(number), Decision)
            left = (s.budget or math.inf) - spent_before - self.clock.elapsed
            decision = kept or plan.decide(number, left)
            if decision is None:
                spent = spent_before + self.clock.elapsed
                self.needed = None if plan.needed is None else Needed(plan.needed, spent)
                break
            if kept is None:
                run.keep(decision_name(number), decision)
            try:
                stage = self._stage(decision, number)
            except KeyboardInterrupt:
                self.stopped = True
                break
            if plan.reached and not self._is_kept(stage):
                break  # begun for a smaller gap than is asked for now
            result = self._run(stage)
            if s.budget is not None:
                run.keep(SPENT, spent_before + self.clock.elapsed)
            self.stopped = result.interrupted
            if result.interrupted or not result.complete:  # whatever the workers had finished by then
                return result
            finished = self.finish(result)
            self.finished.append(finished)
            if s.budget is not None:
                _log.info("stage: %s", finished.summary)
                if self.watch:
                    self.watch(finished.summary)
            plan.learn(finished, finished.better_base if self.base_is_free else None)
        return None

    def _planner(self) -> Planner:
        passes, examples = self.model.raise_passes, len(self.test)
        return Planner(self.settings, self.base, self.run, examples, passes, self.log_f_is_exact)

    def _stage(self, decision: Decision, number: int) -> Stage:
        s, size = self.settings, decision.size
        origin = self.origins.at(decision.base)
        self.clock.lap("base and pilot" if origin.friction else "base")
        betas = self.betas
        if betas is None:
            betas = origin.friction.betas(size.steps) if origin.friction else as_betas(size.steps)
        seed = self.given_seed if s.budget is None and number == 0 else stage_seed(s.seed, number)
        if s.budget is None and self.finished:
            # A second stage of a given size has the same examples, and chains of its own.
            chosen = self.finished[0].result.stage.positions
        else:
            chosen = choose_examples(len(self.test), size.examples, seed)
        return Stage(size, origin.base, betas, chosen, self.test[chosen], seed, number, self.part)

    def _is_kept(self, stage: Stage) -> bool:
        kept = kept_stage(stage.folder, self.settings.precision, self.run)
        return kept is not None and kept.complete

    def _run(self, stage: Stage) -> StageResult:
        """A stage with what other starts found, if they are to be asked; without that where Ctrl-C came."""
        result = run_stage(stage, self.model, self.settings.precision, self.run, self.task(stage))
        self.clock.add(_laps(result, self.clock.since_lap))
        if not self.settings.evidence or not result.complete or result.interrupted:
            return result
        try:
            result = self.with_starts(result)
        except KeyboardInterrupt:
            result = replace(result, interrupted=True)
        self.clock.lap("evidence")
        return result

    def with_starts(self, result: StageResult) -> StageResult:
        """A complete stage with what other starts found.

        Modes are sought in this process, also where workers run the chains: that takes half a second.
        """
        stage, own = result.stage, self.run.inside(result.stage.folder)

        def ask() -> Starts:
            begun = time.perf_counter()
            others, options = self.other_starts(stage)
            how = self.computation(stage, own.inside(EVIDENCE))
            found = ask_starts(
                self.model, stage.base, stage.betas, result.log_weights, others, how, **options
            )
            return replace(found, seconds=time.perf_counter() - begun)

        return replace(result, starts=own.once(EVIDENCE, Starts, ask))

    def computation(self, stage: Stage, run: Run) -> Computation:
        """How chains of other starts are run."""
        return Computation(stage.seed, self.settings.precision, run)  # pyright: ignore[reportArgumentType]


def _laps(result: StageResult, seconds: float) -> dict[str, float]:
    """Seconds of AIS and of RAISE, which shared the time that both took, and core seconds of earlier calls."""
    parts = {"AIS": result.ais, "RAISE": result.raised} if result.stage.size.examples else {"AIS": result.ais}
    own = {name: part.seconds - part.earlier for name, part in parts.items()}
    total = sum(own.values()) or 1.0
    earlier = sum(part.earlier for part in parts.values())
    laps = {name: seconds * share / total for name, share in own.items()}
    return {**laps, **({EARLIER: earlier} if earlier else {})}
