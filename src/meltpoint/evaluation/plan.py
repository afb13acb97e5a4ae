"""Planning for a gap or a budget: measure with a small stage, predict the width of the interval of others, choose.

With N - 1 forward chains the gap of an example is log((exp(g) + N - 1) / N), where g is the log of its reverse weight
over Z: the gap with one particle. Near equilibrium the mean of g and its variance over examples and chains fall as
1 / steps; the variance of AIS's log weights falls more slowly, because of its tail. Several melting chains of an
example are averaged before the logarithm is taken. A stage measures all of this, and after two stages the power of the
steps with which g really falls is known. How much wider a report's interval is than these formulas say is measured too.
Without examples only the variance of AIS is left. A size only decides how long a stage takes: its estimates are
unbiased for any size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.defaults import Settings
from meltpoint.evaluation.reporting import FinishedStage, best_stages
from meltpoint.evaluation.stage import Size
from meltpoint.layers.unit import Floats
from meltpoint.results.report import Report
from meltpoint.results.stages import alpha_of
from meltpoint.runs.run import Run
from meltpoint.statistics.elementary import expit, softplus
from meltpoint.statistics.log_space import effective_sample_size, log_mean_exp

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
_PLAIN_SHARE = 1.0  # the same for each AIS chain, where more of these ask for more of other starts
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
        conservative = spread / np.maximum(examples, 1) + (1 - share) ** 2 * ais + self.fixed_error**2
        width = max(gap, 0.0) + known + sigmas * (math.sqrt(optimistic) + np.sqrt(conservative))
        return self.widening * width / 2


def measure(report: Report, heated: bool = False) -> Measured:
    """Measure a stage by the weights in its report."""
    per, log_z = report.per_example, report.log_z.value
    return Measured(
        steps=report.settings.steps,
        log_ratios=per.log_reverse_weights - log_z,
        deficits=per.log_f[:, np.newaxis] - per.log_reverse_weights - per.log_weights,
        log_variance=log_variance_of(report.ais_log_weights),
        heated=heated,
        particles=report.settings.particles,
        fixed_error=report.log_f_error,
    )


def log_variance_of(log_weights: Floats) -> float:
    """Variance of AIS's log weights (chain,), as far as it matters to log Z."""
    variance, n = upper_variance(log_weights), len(log_weights)
    if n < LEAST_AIS_CHAINS:
        return variance
    # So many show a tail that is heavier than lognormal by how few are effective.
    return max(variance, math.log(n / effective_sample_size(log_weights)))


def upper_variance(log_weights: Floats) -> float:
    """Variance of log weights (chain,) by those above their median: log Z rests on these.

    It is the variance where they are lognormal. The number of effective chains tells less: where it is small it depends
    on chance, and of n chains it can never show a variance much above log n.
    """
    above = np.maximum(0.0, log_weights - np.median(log_weights))
    return 2 * float(np.mean(np.square(above)))


@dataclass(eq=False)
class Planner:
    """Decides what to run next from the stages so far. `passes` are RAISE's through the betas.

    A stage of fewer than `least_steps` is not the last. `starts_grow` says that more AIS chains ask more of other
    starts.
    """

    settings: Settings
    base: str
    run: Run
    test_examples: int = 0
    passes: int = 1
    log_f_is_exact: bool = True
    least_steps: int = 0
    starts_grow: bool = False
    _measured: dict[str, Measured] = field(default_factory=dict)  # by base: the longest stage
    _finished: list[FinishedStage[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        spent = self.run.spent  # by pilots
        self._rate = spent.steps / spent.seconds if spent.steps else _PLAIN_RATE
        usual = _PLAIN_SHARE if self.starts_grow else _PLAIN_OVERHEAD
        self._overhead = usual if self.settings.evidence else 0.0

    @property
    def _target(self) -> float:
        return self.settings.gap or 0.0

    @property
    def _known(self) -> float:
        """Half the width of the smallest interval so far from this base."""
        own = [stage.half_width for stage in self._finished if stage.base == self.base]
        return min(own, default=math.inf)

    @property
    def reached(self) -> bool:
        """Whether the interval is small enough."""
        return any(
            stage.half_width <= self._target and stage.result.stage.size.steps >= self.least_steps
            for stage in self._finished
            if stage.base == self.base
        )

    def decide(self, number: int, seconds: float) -> Decision | None:
        """What to do for the stage of this number in the seconds that are left, None to stop."""
        if self.reached:
            return None
        affordable = self._rate * _RESERVE * (seconds - _AFTERWARDS)
        measured, sigmas = self._measured.get(self.base), self._sigmas(number)
        size = self._next(measured, sigmas, affordable) if measured else self._first(affordable)
        return size and Decision(size, self.base)

    def learn(self, finished: FinishedStage[Any], found: Measured, better: str | None) -> None:
        """Take in what a complete stage has shown, and the base that found more of log Z, if one may be used."""
        stage, starts, spent = finished.result.stage, finished.result.starts, self.run.spent
        size = stage.size
        if self.run.workers and spent.steps:  # how many cores they have is not known here
            self._rate = spent.steps / max(spent.seconds, 1e-3)
        else:
            # What an earlier call has computed took its cores' seconds, as what this one has.
            self._rate = size.work(self.passes) * self.run.threads / max(finished.result.seconds, 1e-3)
        quick = found.half_widths(
            size.steps, size.chains, size.ais_chains, np.array([size.examples]), self._sigmas(stage.number)
        )
        ratio = finished.half_width / quick.item()
        if math.isfinite(ratio):
            found = replace(found, widening=min(_MOST_WIDENING, max(1.0, ratio)))
        self._measured[finished.base] = found.after(self._measured.get(finished.base))
        self._finished.append(finished)
        if starts is not None:
            # By counts and not by the clock: the same seed takes the same decisions while there is time.
            chains = starts.chain_steps / size.steps
            self._overhead = chains / size.ais_chains if self.starts_grow else chains
        untried = better is not None and better not in self._measured
        self.base = better if untried and better else best_stages(self._finished)[0].base

    def _sigmas(self, number: int) -> float:
        return NormalDist().inv_cdf(1 - alpha_of(number, 1 - self.settings.confidence) / 4)

    def _cost(self, size: Size) -> float:
        starts = self._overhead * (size.ais_chains if self.starts_grow else 1)
        return size.work(self.passes) + starts * size.steps

    def _first(self, affordable: float) -> Size | None:
        """A stage from a base that was not tried: of the size that showed it to be better, or one to measure with."""
        last = self._finished[-1].result.stage.size if self._finished else None
        if last and self._cost(last) <= affordable:
            return last
        # Where log f is estimated, starts are drawn, and only more chains make that noise smaller.
        chains = 2 if self.log_f_is_exact else 4
        size = replace(_MEASURING, examples=_least_examples(chains, self.test_examples), chains=chains)
        share = min(1.0, affordable / 3 / self._cost(size))
        size = replace(size, steps=max(_LEAST_STEPS, round(share * size.steps)))
        return None if last and self._cost(size) > affordable else size

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
            np.geomspace(
                max(_LEAST_STEPS // 6, self.least_steps, measured.steps // 2), _MOST_STEPS, 120
            ).astype(int)
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
    powers = least * 2 ** np.arange(max(1, math.ceil(math.log2(max(1, most / max(1, least)))) + 1))
    return np.unique(np.minimum(powers, most))


def _shrink(values: Floats, factor: float) -> Floats:
    """Values whose mean and variance are `factor` times as large."""
    mean = values.mean()
    return factor * mean + math.sqrt(factor) * (values - mean)
