"""A run of log_z(): the base it starts from, its stages, and what each of them computes."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import as_betas
from meltpoint.defaults import LogZSettings
from meltpoint.errors import Progress
from meltpoint.estimators.ais import ais_batch
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.estimators.elimination import Eliminated
from meltpoint.estimators.evidence import Starts
from meltpoint.estimators.exact import cheap_elimination, exact_log_z
from meltpoint.estimators.log_z_sides import Sides
from meltpoint.estimators.pilot import PILOT_STEPS, FrictionSchedule, run_pilot
from meltpoint.estimators.starts import Computation, ask_starts, reverse_log_weights
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.log_z_sizes import LEAST_STEPS, LogZSize, choose_base, first_size, next_size
from meltpoint.evaluation.prerequisites import EXACT_UNITS, make_base
from meltpoint.evaluation.stage import stage_seed
from meltpoint.layers.unit import Floats
from meltpoint.models import Model
from meltpoint.randomness import Purpose, generator
from meltpoint.results.compose import versions
from meltpoint.results.log_z import LogZBracket, LogZStage, bracket_half_width, compose_log_z, stage_of
from meltpoint.results.verdict import judge_target
from meltpoint.runs.run import Run

WatchLogZ: TypeAlias = Callable[[LogZStage], None]
"""Called with each stage that is finished."""

_TRIAL_STEPS, _TRIAL_CHAINS = 100, 100
_TRIAL_SHARE = 10  # steps for one step of the trial, if they were given
_START_SHARE = 4  # forward chains for one chain of each other start
_MELTED_SHARE = 2  # chains of a start for one of its end states that is melted
_LEAST_START = 32
_MOST_STAGES = 12
_TRIAL = 1000  # number of the trial among stages
_EXACT_KEY = 2  # of the random numbers of exact samples


@dataclass(eq=False)
class LogZRun:
    """What all stages share, and the stages themselves."""

    model: Model
    clamped: int
    settings: LogZSettings
    train: NDArray[Any] | None
    threads: int
    progress: Progress | None
    clock: Clock

    @cached_property
    def run(self) -> Run:
        """What computes chains."""
        return Run(self.threads, self.progress)

    def prepare(self, own: Base | None, exact: bool | None) -> None:
        """Exact log Z where it is cheap or wanted, all bases, and the base that annealing starts from."""
        self.eliminated: Eliminated | None = None
        self.exact: float | None = None
        if exact is not False:
            self.eliminated = cheap_elimination(self.model)
            if self.eliminated is not None:
                self.exact = self.eliminated.log_z
            elif exact or self.model.smaller_side <= EXACT_UNITS:
                self.exact = exact_log_z(self.model, threads=self.threads, progress=self.progress)
        self.clock.lap("exact")
        names = [*(["data"] if self.train is not None else []), "model", "uniform"]
        s = self.settings
        self.bases = {name: make_base(name, self.model, self.train, s.seed, self.run) for name in names}
        if own is not None:
            self.bases[own.name] = own
        self.schedules: dict[str, FrictionSchedule] = {}
        self.base = s.base
        if s.base == "auto":
            betas = as_betas(max(_TRIAL_STEPS, s.steps // _TRIAL_SHARE))
            # No chain of the trial may come back in the bracket that its choice decides on.
            trial = stage_seed(s.seed, _TRIAL)
            self.base = choose_base(
                {name: self._forward(name, betas, _TRIAL_CHAINS, trial)[0] for name in names}
            )
        self.clock.lap("bases")

    def run_once(self) -> LogZBracket:
        """The bracket of one stage of the size that was asked for, or of a second one from a base that found more."""
        size = LogZSize(self.settings.steps, self.settings.chains)
        brackets = [self.stage(size, 0)]
        if self._turn_to_larger(brackets[0]):
            try:
                brackets.append(self.stage(size, 1, in_stages=True))
            except KeyboardInterrupt:
                brackets[0] = replace(brackets[0], interrupted=True)
        low = max(bracket.between[0] for bracket in brackets)
        best = brackets[-1] if brackets[-1].between[1] >= low else brackets[0]
        stages = tuple(stage_of(bracket) for bracket in brackets)
        return replace(best, stages=stages, seconds=self.clock.seconds())

    def _turn_to_larger(self, bracket: LogZBracket) -> bool:
        """Whether another base found more than the chosen one; the next stage then starts from it."""
        better = bracket.evidence.better_base(bracket.lower.log_weights)
        if better is None or self.settings.base != "auto" or better.name == self.base:
            return False
        self.base = better.name
        return True

    def close_gap(self, watch: WatchLogZ | None) -> LogZBracket:
        """The bracket of the best stage: each has a size that follows from those before it. All share alpha."""
        s = self.settings
        budget, target = s.budget or math.inf, s.gap or 0.0
        brackets: list[LogZBracket] = []
        size: LogZSize | None = first_size(budget)
        while size is not None and len(brackets) < _MOST_STAGES:
            begun = time.perf_counter()
            try:
                bracket = self.stage(size, len(brackets), in_stages=True)
            except KeyboardInterrupt:
                if not brackets:
                    raise
                brackets[-1] = replace(brackets[-1], interrupted=True)
                break
            rate = size.steps * size.chains / (time.perf_counter() - begun)
            if bracket.interrupted and brackets:
                brackets = [*brackets[:-1], replace(brackets[-1], interrupted=True)]
                break
            brackets.append(bracket)
            if watch:
                watch(stage_of(bracket))
            if bracket.interrupted or (bracket_half_width(bracket) <= target and size.steps >= LEAST_STEPS):
                break
            self._turn_to_larger(bracket)
            left = budget - self.clock.elapsed
            size = next_size(
                size, bracket.lower.log_weights, bracket_half_width(bracket), target, rate * left
            )
        best = best_bracket(brackets)
        verdict = (
            best.verdict
            if s.gap is None
            else judge_target(best.verdict, bracket_half_width(best), s.gap, log_z=True)
        )
        return replace(
            best,
            verdict=verdict,
            stages=tuple(stage_of(bracket) for bracket in brackets),
            seconds=self.clock.seconds(),
            interrupted=any(bracket.interrupted for bracket in brackets),
        )

    def stage(self, size: LogZSize, index: int, *, in_stages: bool = False) -> LogZBracket:
        """Forward chains, other starts and melted states of one size; their random numbers are the stage's own."""
        s = self.settings
        seed = stage_seed(s.seed, index)
        betas = self._schedule(self.base).betas(size.steps)
        forward, interrupted = self._forward(self.base, betas, size.chains, seed)
        self.clock.lap("AIS")
        sides, rests_on = Sides(forward), "nothing: the states were not melted back before Ctrl-C"
        if not interrupted:
            try:
                sides, rests_on = self._melt(forward, betas, size, seed)
            except KeyboardInterrupt:
                interrupted = True
            self.clock.lap("melting")
        return compose_log_z(
            repr(self.model),
            self.clamped,
            replace(s, base=self.base, steps=size.steps, chains=size.chains),
            sides,
            rests_on,
            self.exact,
            self.clock.seconds(),
            versions(),
            stage=index if in_stages else None,
            interrupted=interrupted,
        )

    def _melt(self, forward: Floats, betas: Floats, size: LogZSize, seed: int) -> tuple[Sides, str]:
        """Both sides, and what the upper one rests on."""
        how = Computation(seed, self.settings.precision, self.run)  # pyright: ignore[reportArgumentType]
        base = self.bases[self.base]
        linear = as_betas(size.steps)
        # Chains of the chosen base have end states of their own, apart from the forward chains.
        others = [(base, betas)] + [
            (other, linear) for name, other in self.bases.items() if name != self.base
        ]
        chains = max(_LEAST_START, size.chains // _START_SHARE)
        melted = max(2, chains // _MELTED_SHARE)
        starts = ask_starts(self.model, base, betas, forward, others, how, chains=chains, melted=melted)
        if self.eliminated is None:
            return Sides(forward, starts), _weighted(
                melted * len(others), Sides(forward, starts).n_starts, starts
            )
        n = max(2, size.chains // _START_SHARE)
        units = self.eliminated.sample(n, generator(seed, Purpose.SAMPLE, _EXACT_KEY))
        states = self.model.undirected.state_of(units)
        reverse = reverse_log_weights(how.along(self.model, base), betas, states, 2, how)
        width = self.eliminated.order.width
        return Sides(
            forward, starts, reverse
        ), f"{n:,} exact samples by elimination (width {width}): nothing is assumed"

    def _schedule(self, name: str) -> FrictionSchedule:
        """The friction schedule from a base, measured once."""
        if name not in self.schedules:
            self.schedules[name] = run_pilot(
                self.model, self.train, self.bases[name], PILOT_STEPS, self.settings.seed, self.run
            )
            self.clock.lap("pilot")
        return self.schedules[name]

    def _forward(self, name: str, betas: Floats, chains: int, seed: int) -> tuple[Floats, bool]:
        """Log weights of finished chains, and whether Ctrl-C came; at least two are finished."""
        annealing = Annealing(self.model, self.bases[name], self.settings.precision)  # pyright: ignore[reportArgumentType]
        (found,), interrupted = self.run.results_so_far([ais_batch(annealing, betas, chains, seed)], "AIS")
        if found.values is None or len(found.values.log_weights) < 2:
            raise KeyboardInterrupt
        return found.values.log_weights, interrupted


def best_bracket(brackets: Sequence[LogZBracket]) -> LogZBracket:
    """The bracket with the smallest interval among those that no other contradicts.

    Lower ends are certified or nearly so, whatever was missed: an interval that lies below one of them has missed a
    mode, however small it is.
    """
    low = max(bracket.between[0] for bracket in brackets)
    return min((bracket for bracket in brackets if bracket.between[1] >= low), key=bracket_half_width)


def _weighted(melted: int, n_starts: int, starts: Starts) -> str:
    modes = f", {starts.weighed:,} of them at modes of the model" if starts.weighed else ""
    return (
        f"{melted:,} end states of chains from all starts, drawn by weight: the upper side and the interval hold if no "
        f"start missed a mode; {n_starts:,} gave weights{modes}"
    )
