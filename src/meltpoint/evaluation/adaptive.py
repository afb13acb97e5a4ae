"""Stage after stage, until the gap is known to be small enough or the time is spent.

A stage's size depends on earlier stages and on the clock, its random numbers and its examples on nothing but its
own seed, so that its estimates are as unbiased as those of any run. What is reported is the last stage alone. Sizes
are kept with the run: a run that is continued takes the same decisions, whatever its clock says.
"""

import math
import time
from collections.abc import Callable
from dataclasses import astuple, replace
from typing import TypeAlias

import numpy as np

from meltpoint.annealing.schedule import as_betas
from meltpoint.errors import Progress
from meltpoint.evaluation.allocation import Measured, first_size, measure, next_size
from meltpoint.evaluation.case import Case, Size, report_of, stage_of
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.plan import Stage, legs_of
from meltpoint.evaluation.stage import Found, Work, run_stage
from meltpoint.randomness import Purpose, sequence
from meltpoint.report.report import Report
from meltpoint.report.stages import Spent, doubt_of, sigmas_of
from meltpoint.runs.fingerprint import Arrays
from meltpoint.runs.store import Store, get_or_compute

Watch: TypeAlias = Callable[[Spent], None]
"""Called with each stage that is finished."""

_RESERVE = 0.95  # of the time that is left: what a stage takes is not known to the second
_MOST_STAGES = 12
_PLAIN_RATE = 20_000.0  # chain-steps per second, before any were timed


def close_gap(case: Case, work: Work, clock: Clock, watch: Watch | None) -> Report:
    """The report of the last stage; those before it have decided its size. Ctrl-C gives the last complete one."""
    planner = _Planner(case, clock.started + (case.settings.budget or math.inf))
    report: Report | None = None
    spent: list[Spent] = []
    for index in range(_MOST_STAGES):
        size = _kept(work.store, f"part-{case.part}/decision-{index}", lambda: planner.decide(len(spent)))
        if size is None:
            break
        stage = _stage(case, size, index)
        found = run_stage(stage, replace(work, progress=_told(work.progress, index, size, spent)))
        clock.add(found.seconds)
        if not found.complete and report is not None:
            break
        report = report_of(case, stage, found, clock, doubt_of(index, planner.doubt))
        if not found.complete:
            break
        spent.append(_spent(report, size, legs_of(case.model), planner.sigmas(index)))
        if watch:
            watch(spent[-1])
        if spent[-1].upper <= planner.target:
            break
        planner.learn(stage, size, found, spent[-1].upper, report.log_f_error, work.threads)
    assert report is not None, "the first decision is never to stop"
    return replace(report, stages=tuple(spent), seconds=clock.seconds())


class _Planner:
    """What the stages so far have taught, and what follows for the next."""

    def __init__(self, case: Case, deadline: float) -> None:
        self._case = case
        self._deadline = deadline
        self._legs = legs_of(case.model)
        self._rate = _PLAIN_RATE
        self._known = math.inf
        self._measured: Measured | None = None
        self.target = case.settings.gap or 0.0
        self.doubt = 1 - case.settings.confidence

    def sigmas(self, index: int) -> float:
        """Standard errors that a stage's noise may reach."""
        return sigmas_of(doubt_of(index, self.doubt))

    def decide(self, index: int) -> Size | None:
        """The size of the next stage, None to stop."""
        affordable = self._rate * _RESERVE * (self._deadline - time.perf_counter())
        available = len(self._case.test)
        if self._measured is None:
            return first_size(available, self._legs, affordable)
        return next_size(
            self._measured, self.target, self.sigmas(index), self._known, available, self._legs, affordable
        )

    def learn(
        self, stage: Stage, size: Size, found: Found, upper: float, fixed_error: float, threads: int
    ) -> None:
        """Take in what a complete stage has measured."""
        assert found.prob is not None, "a complete stage has both"
        assert found.log_z is not None, "a complete stage has both"
        log_f = self._case.log_f.values[stage.positions]
        measured = measure(found.prob.log_weights, log_f, found.log_z, size.steps, fixed_error)
        self._measured = measured.after(self._measured)
        self._known = upper
        laps = dict(found.seconds)
        # What an earlier, interrupted call has computed took its cores' seconds.
        seconds = laps.pop("earlier calls", 0.0) / threads + sum(laps.values())
        self._rate = size.work(self._legs) / max(seconds, 1e-3)


def _kept(store: Store, name: str, decide: Callable[[], Size | None]) -> Size | None:
    """A decision: as it was taken, if it was."""

    def compute() -> Arrays:
        size = decide()
        return {"size": np.array(astuple(size) if size else (), np.int64)}

    sizes = get_or_compute(store, name, compute)["size"].tolist()
    return Size(*sizes) if sizes else None


def _stage(case: Case, size: Size, index: int) -> Stage:
    # Nothing of an earlier stage may come back: neither its chains' noise nor its choice of examples.
    seed = int(sequence(case.settings.seed, Purpose.STAGE, index).generate_state(1, np.uint64)[0])
    friction = case.path.friction
    betas = friction.betas(size.steps) if friction else as_betas(size.steps)
    return stage_of(case, size, betas, seed, index)


def _spent(report: Report, size: Size, legs: int, sigmas: float) -> Spent:
    return Spent(
        **vars(size),
        chain_steps=size.work(legs),
        conservative=report.conservative.value,
        optimistic=report.optimistic.value,
        upper=report.gap.value + sigmas * report.gap.stderr,
        ess=report.ess,
    )


def _told(progress: Progress | None, index: int, size: Size, spent: list[Spent]) -> Progress | None:
    """Progress that says which stage this is, and how close the two numbers are by now."""
    if progress is None:
        return None
    so_far = ""
    if spent:
        last = spent[-1]
        so_far = (
            f", RAISE {last.conservative:.2f}, AIS {last.optimistic:.2f}, "
            f"effective {last.ess:,.0f} of {last.ais_chains:,}"
        )
    name = f"stage {index + 1}, {size.steps:,} steps{so_far}"

    def tell(task: str, done: float, total: float) -> None:
        progress(name if task == "AIS and RAISE" else task, done, total)

    return tell
