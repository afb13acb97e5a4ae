"""What the stages of an evaluation have shown so far, what time is left, and what to run next."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from meltpoint.defaults import Settings
from meltpoint.estimators.ais import log_z_of
from meltpoint.estimators.evidence import Starts
from meltpoint.evaluation.stage_report import best_stage, half_width_of
from meltpoint.evaluation.stage_sizes import (
    LEAST_AIS_CHAINS,
    LEAST_ESS,
    Observed,
    first_size,
    grown_size,
    measure,
    next_size,
)
from meltpoint.models.log_f import LogF
from meltpoint.results.compose import controlled_log_f
from meltpoint.results.duration import Clock
from meltpoint.results.report import Report
from meltpoint.results.stages import StageSummary, alpha_of
from meltpoint.runs.store import Store
from meltpoint.stages.decisions import Decision
from meltpoint.stages.stage import Size, Stage, StageWeights, new_tasks_of

_RESERVE = 0.94  # share of the time left that is planned with: the time of a stage is not known exactly
_AFTERWARDS = 0.3  # seconds that a report takes
PLAIN_RATE = 20_000.0
"""Chain-steps per second, before any were timed."""

_PLAIN_OVERHEAD = 150.0  # what other starts cost, in chains, before any were asked
_FEW_ARE_SLOW = 1.8  # seconds of a chain-step of other starts, relative to a stage's: few chains run at once
_CHEAPER = 0.7  # cost of a new stage relative to growing at which it is taken: its width is known less well
_NARROWER = (
    0.9  # width of a new stage relative to growing at which it is taken, if neither reaches the target
)
_CALIBRATIONS = 2
_MOST_WIDENING = 3.0
_HELPED = 1.2  # ratio of effective shares from which on more steps have helped
_EVEN = 0.2  # effective share below which a stage at most doubles: then one large weight counts for less
_UNEVEN = 0.08  # effective share below which more steps come first, unless
_LITTLE = 2.0  # times the AIS chains that a stage began with are enough: more steps cost all of a stage again


class Budget:
    """Seconds that are left of a budget, those of earlier calls of the same run counted."""

    def __init__(self, seconds: float, store: Store, name: str, clock: Clock) -> None:
        self._store, self._name, self._clock = store, name, clock
        kept = store.read(name, {"seconds": ((), "f")})
        self._before = float(kept["seconds"]) if kept else 0.0
        self._seconds = seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._seconds - self._before - self._clock.elapsed

    def keep(self) -> None:
        """Write down what was spent by now."""
        self._store.write(self._name, {"seconds": np.array(self._before + self._clock.elapsed)})


@dataclass(frozen=True, eq=False)
class Look:
    """A look at a complete stage, new or grown: its weights, what other starts found, and its report.

    `summary` is made without the other starts. A stage that grows is looked at again, and each look has its share of
    the probability of being wrong.
    """

    stage: Stage
    weights: StageWeights
    starts: Starts | None
    report: Report
    summary: StageSummary

    @property
    def base(self) -> str:
        """Name of the base."""
        return self.stage.base.name

    @property
    def half_width(self) -> float:
        """Half the width of the report's interval."""
        return half_width_of(self.report)


@dataclass(frozen=True)
class _Option:
    """Something to do next: the half width of the interval that it should give, and its cost in chain-steps.

    `even` unless few of many chains are effective: more of them would find still larger weights.
    """

    decision: Decision
    half_width: float
    cost: float
    even: bool = True


@dataclass(eq=False)
class Planner:
    """Decides what to run next from the looks so far.

    `passes` are RAISE's through the betas, `rate` is in chain-steps per second.
    """

    settings: Settings
    log_f: LogF
    test_examples: int
    passes: int
    base: str
    budget: Budget
    rate: float = PLAIN_RATE

    def __post_init__(self) -> None:
        self.looks: list[Look] = []
        self._observed: list[Observed] = []
        self._measured: dict[str, Observed] = {}  # by base: the longest stage
        self._overhead = _PLAIN_OVERHEAD if self.settings.evidence else 0.0

    @property
    def target(self) -> float:
        """Half the width that is asked for."""
        return self.settings.gap or 0.0

    @property
    def known(self) -> float:
        """Half the width of the smallest interval so far from this base."""
        return min((look.half_width for look in self.looks if look.base == self.base), default=math.inf)

    @property
    def reached(self) -> bool:
        """Whether the interval is small enough."""
        return self.known <= self.target

    def latest(self, index: int) -> Look:
        """The stage of this number, as large as it is by now."""
        return [look for look in self.looks if look.stage.index == index][-1]

    def decide(self, index: int) -> Decision | None:
        """What to do for the look of this number, None to stop."""
        affordable = self.rate * _RESERVE * (self.budget.left - _AFTERWARDS)
        if self.base not in self._measured:
            return self._first(affordable)
        alpha = alpha_of(index, 1 - self.settings.confidence)
        grown, fresh = self._grow(alpha, affordable), self._begin(alpha, affordable)
        if grown is None or fresh is None:
            chosen = grown or fresh
        elif not grown.even:
            chosen = fresh
        elif fresh.decision.size.ais_chains < LEAST_AIS_CHAINS:  # it only measures
            chosen = grown if grown.half_width <= self.target else fresh
        elif max(grown.half_width, fresh.half_width) <= self.target:
            chosen = fresh if fresh.cost < _CHEAPER * grown.cost else grown
        else:
            chosen = fresh if fresh.half_width < _NARROWER * grown.half_width else grown
        return chosen and chosen.decision

    def turn(self, better: str | None) -> None:
        """Go on from a base that found more of log Z, if it was not tried; from the one that found most otherwise."""
        if better is not None and better not in self._measured:
            self.base = better
        else:
            self.base = best_stage([look.report for look in self.looks]).settings.base

    def time(self, stage: Stage, seconds: Mapping[str, float], threads: int) -> None:
        """Take in the seconds that a stage has taken, or what it has grown by."""
        laps = dict(seconds)
        # What an earlier, interrupted call has computed took its cores' seconds.
        spent = laps.pop("earlier calls", 0.0) / threads + sum(laps.values())
        self.rate = sum(task.work(stage) for task in new_tasks_of(stage)) / max(spent, 1e-3)

    def learn(self, look: Look) -> None:
        """Take in what a complete stage has shown, and what other starts say of it."""
        stage, starts = look.stage, look.starts
        log_z, melted = look.weights.log_z(), look.weights.melted()
        assert log_z is not None, "a complete stage has both"
        assert melted is not None, "a complete stage has both"
        log_f = controlled_log_f(self.log_f, melted, stage.positions)
        measured = measure(
            melted,
            log_f.values[stage.positions],
            log_z,
            stage.size.steps,
            heated=self.passes > 1,
            particles=self.settings.particles,
            fixed_error=log_f.mean.error,
        )
        longest = self._measured.get(look.base)
        observed = Observed(
            stage.size,
            log_z.log_weights,
            melted,
            stage.positions,
            log_f,
            starts,
            measured.after(longest.measured if longest else None),
        )
        if longest is None or stage.size.steps >= longest.size.steps:
            self._measured[look.base] = observed
        self.looks.append(look)
        self._observed.append(observed)
        if starts is not None:
            # By counts and not by the clock: the same seed takes the same decisions while there is time.
            self._overhead = _FEW_ARE_SLOW * starts.chain_steps / stage.size.steps

    def _first(self, affordable: float) -> Decision | None:
        """A stage from a base that was not tried: of the size that showed it to be better, or one to measure with."""
        if self.looks:
            size = self.looks[-1].stage.size
            if size.work(self.passes) + self._overhead * size.steps <= affordable:
                return Decision(size, self.base)
        # Where log f is estimated, starts are drawn, and only more chains make that noise smaller.
        chains = 4 if not self.log_f.is_exact else 2
        size = first_size(self.test_examples, self.passes, affordable, chains, self._overhead)
        return None if self.looks and size.work(self.passes) > affordable else Decision(size, self.base)

    def _grow(self, alpha: float, affordable: float) -> _Option | None:
        """The best stage from this base with more chains and examples, of those that were planned."""
        able = {
            look.stage.index: (look, observed)
            for look, observed in zip(self.looks, self._observed, strict=True)
            if look.base == self.base and look.stage.begun_with[1] >= LEAST_AIS_CHAINS
        }
        if not able:
            return None
        look, observed = min(able.values(), key=lambda each: each[0].half_width)
        found = grown_size(
            observed, self.target, alpha, self.known, self.test_examples, self.passes, affordable
        )
        if found is None:
            return None
        width, size = found
        cost = size.work(self.passes) - observed.size.work(self.passes)
        little = size.ais_chains <= _LITTLE * look.stage.begun_with[1]
        even = _effective(look) > _UNEVEN or little or not self._steps_help()
        if _effective(look) < _EVEN:
            size = replace(size, ais_chains=min(size.ais_chains, 2 * observed.size.ais_chains))
        return _Option(Decision(size, self.base, look.stage.index), width, cost, even)

    def _steps_help(self) -> bool:
        """Whether more steps have made more of the chains effective, as far as that was tried from this base."""
        by_steps = {
            look.stage.size.steps: _effective(look)
            for look in self.looks
            if look.base == self.base and look.stage.begun_with[1] >= LEAST_AIS_CHAINS
        }
        if len(by_steps) < 2:
            return True
        short, long = (by_steps[steps] for steps in sorted(by_steps)[-2:])
        return long > _HELPED * short

    def _begin(self, alpha: float, affordable: float) -> _Option | None:
        """A new stage, with other steps."""
        observed = self._measured[self.base]
        measured, sigmas = observed.measured, NormalDist().inv_cdf(1 - alpha / 4)

        def widening(size: Size) -> float:
            """How much wider the report's formulas predict the interval than the quick ones."""
            if log_z_of(observed.forward).ess < LEAST_ESS:
                return 1.0  # they would repeat the one weight that counts
            quick = measured.half_widths(
                size.steps, size.chains, size.ais_chains, np.array([size.examples]), sigmas
            ).item()
            ratio = observed.half_width(size, alpha) / quick
            # Not narrower: repeated weights lack the large ones that further chains will have.
            return min(_MOST_WIDENING, max(1.0, ratio)) if math.isfinite(ratio) else 1.0

        wider, size = widening(observed.size), None
        for _ in range(_CALIBRATIONS):
            size = next_size(
                measured,
                self.target / wider,
                sigmas,
                self.known / wider,
                self.test_examples,
                self.passes,
                affordable,
                self._overhead,
            )
            if size is None:
                return None
            wider = widening(size)
        assert size is not None, "there is at least one calibration"
        cost = size.work(self.passes) + self._overhead * size.steps
        return _Option(Decision(size, self.base), observed.half_width(size, alpha), cost)


def _effective(look: Look) -> float:
    """Share of effective AIS chains."""
    return look.summary.ess / look.stage.ais_chains
