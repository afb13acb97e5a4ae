"""Planning for a gap or a budget: measure with a small stage, predict the width of the interval of others, choose.

With N - 1 forward chains the gap of an example is log((exp(g) + N - 1) / N), where g is the log of its reverse weight
over Z: the gap with one particle. Near equilibrium the mean of g and its variance over examples and chains fall as
1 / steps; the variance of AIS's log weights falls more slowly, because of its tail. Several melting chains of an
example are averaged before the logarithm is taken. A stage measures all of this, and after two stages the power of the
steps with which g really falls is known. How much wider a report's interval is than these formulas say is measured too.
A size only decides how long a stage takes: its estimates are unbiased for any size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from meltpoint.defaults import Settings
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.particles import Melted
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.stage import Size, StageResult
from meltpoint.evaluation.stage_report import best_stage, half_width_of
from meltpoint.layers.unit import Floats
from meltpoint.models.log_f import LogF
from meltpoint.results.compose import controlled_log_f
from meltpoint.results.report import Report
from meltpoint.results.stages import alpha_of
from meltpoint.runs.contents import SPENT
from meltpoint.runs.run import Run
from meltpoint.statistics.elementary import expit, softplus
from meltpoint.statistics.log_space import log_mean_exp

LEAST_AIS_CHAINS = 500
"""Fewest AIS chains of a stage that is to be the last: fewer rarely meet the large weights that matter."""

_AIM = (
    0.85  # share of the target that a predicted half width may have: one that falls short costs a third stage
)
_WORTH_IT = 0.97  # share of the smallest half width so far that a stage must be predicted to reach
_RESERVE = 0.94  # share of the time left that is planned with: the time of a stage is not known exactly
_AFTERWARDS = 0.3  # seconds that a report takes
_PLAIN_RATE = 20_000.0  # chain-steps per second, before any were timed
_PLAIN_OVERHEAD = 150.0  # what other starts cost, in chains, before any were asked
_MEASURING = Size(
    steps=2000, examples=50, chains=2, ais_chains=256
)  # the first stage, where there is time for it
_LEAST_STEPS = 300  # with fewer neither the time nor the result of a stage can be predicted
_MOST_STEPS, _MOST_AIS_CHAINS = 10_000_000, 128_000
_LEAST_ESS = 20.0  # with fewer effective chains a width depends on one weight
_FARTHEST = 40.0  # largest ratio of steps over which the power law is trusted
_BETWEEN = 10.0  # ratio of steps of a stage that measures again, where it is not
_GENTLEST_POWER = 0.3
_VARIANCE_POWER = 0.7  # of AIS's log weights: their variance falls as steps to the minus this, its tail last
_EVEN_VARIANCE = 2.0  # of AIS's log weights: above it limits miss too often (docs/decisions/schedules.md)
_FLAT = (
    1.15  # sizes of up to this many times the least cost are equal: of them, more steps make a tail lighter
)
_MOST_WIDENING = 3.0


@dataclass(frozen=True)
class Decision:
    """The size of a stage, and the name of its base."""

    size: Size
    base: str


class Budget:
    """Seconds that are left of a budget, those of earlier calls of the same run counted."""

    def __init__(self, seconds: float, run: Run, clock: Clock) -> None:
        self._seconds, self._run, self._clock = seconds, run, clock
        self._before = run.recall(SPENT, float) or 0.0

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._seconds - self._before - self._clock.elapsed

    def keep(self) -> None:
        """Write down what was spent by now."""
        self._run.keep(SPENT, self._before + self._clock.elapsed)


@dataclass(frozen=True, eq=False)
class Measured:
    """What a stage of so many steps has measured.

    `log_ratios` (example, chain) are g; `deficits` (example, chain) what the start of a chain loses besides, as deep
    models do; `log_variance` is that of AIS's log weights. Means and variances fall as steps to the minus `power`; the
    deficits' only if they come from annealing (`heated`). `particles` is N, if it is limited, and
    `fixed_error` what no size makes smaller. `widening` is how much wider the report's interval was than predicted.
    """

    steps: int
    log_ratios: Floats
    deficits: Floats
    log_variance: float
    heated: bool = False
    particles: int | None = None
    fixed_error: float = 0.0
    power: float = 1.0
    widening: float = 1.0

    @property
    def loss(self) -> float:
        """Mean gap with one particle."""
        return float(np.mean(self.log_ratios + self.deficits))

    def after(self, earlier: "Measured | None") -> "Measured":
        """What is known after this stage and an earlier one: the longer of them, with the power both show together."""
        if earlier is None:
            return self
        if earlier.steps > self.steps:
            return earlier
        if earlier.steps == self.steps:
            return replace(self, power=earlier.power)
        if min(self.loss, earlier.loss) <= 0:
            return self
        fallen = math.log(earlier.loss / self.loss) / math.log(self.steps / earlier.steps)
        return replace(self, power=float(np.clip(fallen, _GENTLEST_POWER, 1.0)))

    def fallen(self, steps: int, power: float | None = None) -> float:
        """Means and variances at so many steps, as parts of those measured; with fewer steps they rise as 1 / steps."""
        power = self.power if power is None else power
        return (self.steps / steps) ** (power if steps > self.steps else 1.0)

    def log_variance_at(self, steps: int) -> float:
        """Variance of AIS's log weights with so many steps."""
        return self.log_variance * self.fallen(steps, _VARIANCE_POWER)

    def predict(self, steps: int, chains: int, ais_chains: int) -> tuple[float, float, float]:
        """Gap of a stage with so many particles, its variance over examples, and the share of AIS's error in it."""
        fallen = self.fallen(steps)
        g = _shrink(self.log_ratios, fallen)
        e = _shrink(self.deficits, fallen if self.heated else 1.0)
        others = ais_chains if self.particles is None else min(ais_chains, self.particles - 1)
        odds = (math.log(others) if others else -math.inf) - g
        terms = math.log(others + 1) - softplus(odds) - g - e  # log of estimates over p, by chain
        whole = terms.shape[1] // chains * chains
        gaps = -log_mean_exp(terms[:, :whole].reshape(len(terms), -1, chains))
        spread = float(np.var(gaps[:, 0], ddof=1)) if len(gaps) > 1 else 0.0
        return float(gaps.mean()), spread, 1 - float(expit(odds).mean())

    def half_widths(
        self, steps: int, chains: int, ais_chains: int, examples: NDArray[np.integer], sigmas: float
    ) -> Floats:
        """Predicted half widths (number of examples,) of the interval; infinite where AIS has too few chains."""
        ais = math.expm1(min(self.log_variance_at(steps), 50.0)) / ais_chains  # variance of log Z
        if ais_chains / (1 + ais * ais_chains) < _LEAST_ESS:
            return np.full(len(examples), np.inf)
        gap, spread, share = self.predict(steps, chains, ais_chains)
        # One standard error of this measurement on the safe side: a loss that chance has hidden would be met again.
        known = math.sqrt(spread / len(self.log_ratios))
        optimistic = ais + self.fixed_error**2
        conservative = spread / examples + (1 - share) ** 2 * ais + self.fixed_error**2
        width = max(gap, 0.0) + known + sigmas * (math.sqrt(optimistic) + np.sqrt(conservative))
        return self.widening * width / 2


def measure(
    melted: Melted,
    log_f: Floats,
    log_z: LogZ,
    steps: int,
    heated: bool = False,
    particles: int | None = None,
    fixed_error: float = 0.0,
) -> Measured:
    """Measure a stage by the log weights of RAISE (example, chain) and AIS, and log f (example,) of its examples."""
    log_ratios = melted.log_reverse_weights - log_z.value
    deficits = log_f[:, np.newaxis] - melted.log_reverse_weights - melted.log_weights
    log_variance = upper_variance(log_z.log_weights)
    n = len(log_z.log_weights)
    if n >= LEAST_AIS_CHAINS:  # so many show a tail that is heavier than lognormal by how few are effective
        log_variance = max(log_variance, math.log(n / log_z.ess))
    return Measured(steps, log_ratios, deficits, log_variance, heated, particles, fixed_error)


def upper_variance(log_weights: Floats) -> float:
    """Variance of log weights (chain,) by those above their median: log Z rests on these.

    It is the variance where they are lognormal. The number of effective chains tells less: where it is small it depends
    on chance, and of n chains it can never show a variance much above log n.
    """
    above = np.maximum(0.0, log_weights - np.median(log_weights))
    return 2 * float(np.mean(np.square(above)))


@dataclass(eq=False)
class Planner:
    """Decides what to run next from the stages so far. `passes` are RAISE's through the betas."""

    settings: Settings
    log_f: LogF
    test_examples: int
    passes: int
    base: str
    budget: Budget
    run: Run
    _measured: dict[str, Measured] = field(default_factory=dict)  # by base: the longest stage
    _reports: list[tuple[Report, Size]] = field(default_factory=list)

    def __post_init__(self) -> None:
        spent = self.run.spent  # by pilots
        self._rate = spent.steps / spent.seconds if spent.steps else _PLAIN_RATE
        self._overhead = _PLAIN_OVERHEAD if self.settings.evidence else 0.0

    @property
    def _target(self) -> float:
        return self.settings.gap or 0.0

    @property
    def _known(self) -> float:
        """Half the width of the smallest interval so far from this base."""
        own = [half_width_of(report) for report, _ in self._reports if report.settings.base == self.base]
        return min(own, default=math.inf)

    @property
    def reached(self) -> bool:
        """Whether the interval is small enough."""
        return self._known <= self._target

    def decide(self, number: int) -> Decision | None:
        """What to do for the stage of this number, None to stop."""
        if self.reached:
            return None
        affordable = self._rate * _RESERVE * (self.budget.left - _AFTERWARDS)
        measured = self._measured.get(self.base)
        if measured is None:
            size = self._first(affordable)
        else:
            alpha = alpha_of(number, 1 - self.settings.confidence)
            size = self._next(measured, NormalDist().inv_cdf(1 - alpha / 4), affordable)
        return size and Decision(size, self.base)

    def learn(self, result: StageResult, report: Report, better: str | None) -> None:
        """Take in what a complete stage has shown, and the base that found more of log Z, if one did."""
        stage, log_z, melted = result.stage, result.log_z, result.melted
        assert log_z is not None, "a complete stage has both"
        assert melted is not None, "a complete stage has both"
        log_f = controlled_log_f(self.log_f, melted, stage.positions)
        found = measure(
            melted,
            log_f.values[stage.positions],
            log_z,
            stage.size.steps,
            heated=self.passes > 1,
            particles=self.settings.particles,
            fixed_error=log_f.mean.error,
        )
        spent = self.run.spent
        if self.run.workers and spent.steps:  # how many cores they have is not known here
            self._rate = spent.steps / max(spent.seconds, 1e-3)
        else:
            # What an earlier call has computed took its cores' seconds, as what this one has.
            self._rate = stage.size.work(self.passes) * self.run.threads / max(result.seconds, 1e-3)
        alpha = alpha_of(stage.number, 1 - self.settings.confidence)
        _, examples, chains, ais_chains = vars(stage.size).values()
        sigmas = NormalDist().inv_cdf(1 - alpha / 4)
        quick = found.half_widths(stage.size.steps, chains, ais_chains, np.array([examples]), sigmas).item()
        ratio = half_width_of(report) / quick
        if math.isfinite(ratio):
            found = replace(found, widening=min(_MOST_WIDENING, max(1.0, ratio)))
        base = stage.base.name
        self._measured[base] = found.after(self._measured.get(base))
        self._reports.append((report, stage.size))
        if result.starts is not None:
            # By counts and not by the clock: the same seed takes the same decisions while there is time.
            self._overhead = result.starts.chain_steps / stage.size.steps
        if better is not None and better not in self._measured:
            self.base = better
        else:
            self.base = best_stage([report for report, _ in self._reports]).settings.base

    def _cost(self, size: Size) -> float:
        return size.work(self.passes) + self._overhead * size.steps

    def _first(self, affordable: float) -> Size | None:
        """A stage from a base that was not tried: of the size that showed it to be better, or one to measure with."""
        if self._reports and self._cost(self._reports[-1][1]) <= affordable:
            return self._reports[-1][1]
        # Where log f is estimated, starts are drawn, and only more chains make that noise smaller.
        chains = 2 if self.log_f.is_exact else 4
        size = replace(_MEASURING, examples=_least_examples(chains, self.test_examples), chains=chains)
        share = min(1.0, affordable / 3 / self._cost(size))
        size = replace(size, steps=max(_LEAST_STEPS, round(share * size.steps)))
        return None if self._reports and self._cost(size) > affordable else size

    def _next(self, measured: Measured, sigmas: float, affordable: float) -> Size | None:
        """A stage whose interval should be plus or minus the target, or the best that is affordable.

        Near the quickest one cost hardly depends on the steps: of those that cost little more, it has the most steps.
        None if no affordable stage would improve by enough to be worth it. Where RAISE's chains say what log f is
        (`heated`) there are as many for an example as were measured: from fewer its bias cannot be told.
        """
        enough: list[tuple[float, Size]] = []
        quickest = math.inf
        best: tuple[float, Size] | None = None
        for sizes in self._sizes(measured):
            if self._cost(sizes[0]) > _FLAT * quickest:
                continue
            one = sizes[0]
            examples = np.array([size.examples for size in sizes])
            widths = measured.half_widths(one.steps, one.chains, one.ais_chains, examples, sigmas)
            even = measured.log_variance_at(one.steps) <= _EVEN_VARIANCE
            for size, width in zip(sizes, widths.tolist(), strict=True):
                cost = self._cost(size)
                if even and width <= _AIM * self._target and size.ais_chains >= LEAST_AIS_CHAINS:
                    enough.append((cost, size))
                    quickest = min(quickest, cost)
                if cost <= affordable and (best is None or width < best[0]):
                    best = width, size
        chosen = max(
            (each for each in enough if each[0] <= _FLAT * quickest),
            key=lambda each: (each[1].steps, -each[0]),
            default=None,
        )
        if chosen and chosen[1].steps > _FARTHEST * measured.steps:
            between = replace(_MEASURING, steps=round(_BETWEEN * measured.steps))
            between = replace(
                between,
                chains=measured.log_ratios.shape[1],
                examples=min(between.examples, self.test_examples),
            )
            if self._cost(between) <= affordable / 2:  # the next one needs the rest
                return between
        if chosen and chosen[0] <= affordable:
            return chosen[1]
        return best[1] if best and best[0] < _WORTH_IT * self._known else None

    def _sizes(self, measured: Measured) -> "list[Sequence[Size]]":
        """Sizes to choose from: with more and more examples, for each number of chains, AIS chains and steps."""
        most_chains = measured.log_ratios.shape[1]
        steps = np.unique(
            np.geomspace(max(_LEAST_STEPS // 6, measured.steps // 2), _MOST_STEPS, 120).astype(int)
        )
        ais_chains = [
            _MEASURING.ais_chains,
            *np.geomspace(LEAST_AIS_CHAINS, _MOST_AIS_CHAINS, 29).astype(int),
        ]
        return [
            [
                Size(int(n_steps), int(n), chains, int(n_ais))
                for n in _doubled(_least_examples(chains, self.test_examples), self.test_examples)
            ]
            for chains in range(most_chains if measured.heated else 1, most_chains + 1)
            for n_ais in ais_chains
            for n_steps in steps
        ]


def _least_examples(chains: int, test_examples: int) -> int:
    return min(test_examples, max(25, min(50, 100 // chains)))


def _doubled(least: int, most: int) -> NDArray[np.integer]:
    """least, 2 least, 4 least, … below most, and most."""
    powers = least * 2 ** np.arange(max(1, math.ceil(math.log2(max(1, most / least))) + 1))
    return np.unique(np.minimum(powers, most))


def _shrink(values: Floats, factor: float) -> Floats:
    """Values whose mean and variance are `factor` times as large."""
    mean = values.mean()
    return factor * mean + math.sqrt(factor) * (values - mean)
