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
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, TypeAlias

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

_AIM = 0.85  # share of the target that a predicted half width may have: falling short costs a third stage
_WORTH_IT = 0.97  # share of the smallest half width so far that a stage must be predicted to reach
_RESERVE = 0.94  # share of the time left that is planned with: the time of a stage is not known exactly
_AFTERWARDS = 0.3  # seconds that a report takes
_PLAIN_RATE = 20_000.0  # chain-steps per second, before any were timed
_PLAIN_OVERHEAD = 150.0  # what other starts cost, in chains, before any were asked
_PLAIN_SHARE = 1.0  # the same for each AIS chain, where more of these ask for more of other starts
_MEASURING = Size(2000, examples=50, chains=2, ais_chains=256)  # the first stage, where there is time for it
_LEAST_STEPS = 300  # with fewer neither the time nor the result of a stage can be predicted
_LEAST_STEPS_ALONE = (
    1000  # of the last stage of log_z(): with fewer, chains from all starts may miss the same modes
)
_MOST_STEPS = 10_000_000
_LEAST_ESS = 20.0  # with fewer effective chains a width depends on one weight
_FARTHEST = 40.0  # largest ratio of steps over which the power law is trusted
_BETWEEN = 10.0  # ratio of steps of a stage that measures again, where it is not
_GENTLEST_POWER = 0.3
_VARIANCE_POWER = 0.7  # of AIS's log weights: their variance falls as steps to the minus this, its tail last
_EVEN_VARIANCE = 2.0  # of AIS's log weights: above it limits miss too often (docs/decisions/schedules.md)
_FLAT = 1.15  # times the least cost, up to which sizes are equal: of them, more steps make a tail lighter
_MOST_WIDENING = 3.0
_AIS_CHAINS = (_MEASURING.ais_chains, *np.geomspace(LEAST_AIS_CHAINS, 128_000, 29).astype(int).tolist())

Counts: TypeAlias = NDArray[np.integer]


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

    def fallen(self, steps: Counts, power: float | None = None) -> Floats:
        """Means and variances with these steps, as parts of those measured; with fewer they rise as 1 / steps."""
        power = self.power if power is None else power
        return (self.steps / steps) ** np.where(steps > self.steps, power, 1.0)

    def log_variance_at(self, steps: Counts) -> Floats:
        """Variances of AIS's log weights with these steps."""
        return self.log_variance * self.fallen(steps, _VARIANCE_POWER)

    def predict(self, steps: Counts, chains: int, ais_chains: int) -> tuple[Floats, Floats, Floats]:
        """For each number of steps: the gap, its variance over examples, and the share of AIS's error in it."""
        fallen = self.fallen(steps)
        g = _shrink(self.log_ratios, fallen)  # (steps, example, chain)
        e = _shrink(self.deficits, fallen if self.heated else np.ones_like(fallen))
        others = ais_chains if self.particles is None else min(ais_chains, self.particles - 1)
        odds = (math.log(others) if others else -math.inf) - g
        terms = math.log(others + 1) - softplus(odds) - g - e  # log of estimates over p, by chain
        n_steps, n, measured_chains = terms.shape
        groups = measured_chains // chains
        grouped = terms[..., : groups * chains].reshape(n_steps, n, groups, chains)
        gaps = -(log_mean_exp(grouped) if chains > 1 else terms)
        spread = np.var(gaps[..., 0], axis=1, ddof=1) if n > 1 else np.zeros(n_steps)
        return gaps.mean(axis=(1, 2)), spread, 1 - expit(odds).mean(axis=(1, 2))

    def half_widths(
        self, steps: Counts, chains: int, ais_chains: int, examples: Counts, sigmas: float
    ) -> Floats:
        """Predicted half widths (steps, examples) of the interval; infinite where AIS has too few chains."""
        ais = np.expm1(np.minimum(self.log_variance_at(steps), 50.0)) / ais_chains  # variance of log Z
        gap, spread, share = self.predict(steps, chains, ais_chains)
        # One standard error of this measurement on the safe side: a loss that chance has hidden would be met again.
        known = np.sqrt(spread / len(self.log_ratios))
        optimistic = ais + self.fixed_error**2
        of_ais = (1 - share) ** 2 * ais + self.fixed_error**2
        conservative = spread[:, np.newaxis] / np.maximum(examples, 1) + of_ais[:, np.newaxis]
        one_sided = np.maximum(gap, 0.0) + known + sigmas * np.sqrt(optimistic)
        widths = self.widening * (one_sided[:, np.newaxis] + sigmas * np.sqrt(conservative)) / 2
        effective = ais_chains / (1 + ais * ais_chains)
        return np.where(effective[:, np.newaxis] < _LEAST_ESS, np.inf, widths)


def measure(finished: FinishedStage[Any], heated: bool = False) -> Measured:
    """Measure a stage by its weights; without examples AIS's alone."""
    size, report = finished.result.stage.size, finished.report
    log_ratios = deficits = np.zeros((1, size.chains))
    particles, fixed_error = None, 0.0
    if isinstance(report, Report):
        per = report.per_example
        log_ratios = per.log_reverse_weights - report.log_z.value
        deficits = per.log_f[:, np.newaxis] - per.log_reverse_weights - per.log_weights
        particles, fixed_error = report.settings.particles, report.log_f_error
    log_variance = log_variance_of(finished.log_weights)
    return Measured(size.steps, log_ratios, deficits, log_variance, heated, particles, fixed_error)


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

    Without test examples more AIS chains ask more of other starts. Where time has run out `needed` are the seconds that
    would reach the target, infinite if no stage is predicted to.
    """

    settings: Settings
    base: str
    run: Run
    test_examples: int = 0
    passes: int = 1
    log_f_is_exact: bool = True
    needed: float | None = None
    _measured: dict[str, Measured] = field(default_factory=dict)  # by base: the longest stage
    _finished: list[FinishedStage[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        spent = self.run.spent  # by pilots
        self._rate = spent.steps / spent.seconds if spent.steps else _PLAIN_RATE
        usual = _PLAIN_OVERHEAD if self.test_examples else _PLAIN_SHARE
        self._overhead = usual if self.settings.evidence else 0.0

    @property
    def _least_steps(self) -> int:
        """Fewest steps of the last stage."""
        return 0 if self.test_examples else _LEAST_STEPS_ALONE

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
            stage.half_width <= self._target and stage.result.stage.size.steps >= self._least_steps
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

    def learn(self, finished: FinishedStage[Any], better: str | None) -> None:
        """Take in what a complete stage has shown, and the base that found more of log Z, if one may be used."""
        stage, starts, spent = finished.result.stage, finished.result.starts, self.run.spent
        size, found = stage.size, measure(finished, heated=self.passes > 1)
        if self.run.workers and spent.steps:  # how many cores they have is not known here
            self._rate = spent.steps / max(spent.seconds, 1e-3)
        else:
            # What an earlier call has computed took its cores' seconds, as what this one has.
            self._rate = size.work(self.passes) * self.run.n_threads / max(finished.result.seconds, 1e-3)
        steps, examples = np.array([size.steps]), np.array([size.examples])
        predicted = found.half_widths(
            steps, size.chains, size.ais_chains, examples, self._sigmas(stage.number)
        )
        if predicted.item() > 0 and math.isfinite(ratio := finished.half_width / predicted.item()):
            found = replace(found, widening=min(_MOST_WIDENING, max(1.0, ratio)))
        self._measured[finished.base] = found.after(self._measured.get(finished.base))
        self._finished.append(finished)
        if starts is not None:
            # By counts and not by the clock: the same seed takes the same decisions while there is time.
            chains = starts.chain_steps / size.steps
            self._overhead = chains if self.test_examples else chains / size.ais_chains
        untried = better is not None and better not in self._measured
        self.base = better if untried and better else best_stages(self._finished)[0].base

    def _sigmas(self, number: int) -> float:
        return NormalDist().inv_cdf(1 - alpha_of(number, 1 - self.settings.confidence) / 4)

    def _cost(self, size: Size) -> float:
        return size.steps * self._chains(size.examples, size.chains, size.ais_chains)

    def _chains(self, examples: Any, chains: int, ais_chains: int) -> Any:  # noqa: ANN401
        """Chains of a stage, with those of other starts, and RAISE's as often as they go through the betas."""
        starts = self._overhead * (1 if self.test_examples else ais_chains)
        return examples * chains * self.passes + ais_chains + starts

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
        steps, tables = self._steps(measured), []
        most_chains = measured.log_ratios.shape[1]
        for chains in range(most_chains if measured.heated else 1, most_chains + 1):
            examples = _doubled(_least_examples(chains, self.test_examples), self.test_examples)
            for ais_chains in _AIS_CHAINS:
                widths = measured.half_widths(steps, chains, ais_chains, examples, sigmas)
                each = np.broadcast_arrays(steps[:, np.newaxis], examples, chains, ais_chains, widths)
                tables.append(np.stack(each).reshape(5, -1))
        table = np.concatenate(tables, axis=1)
        costs = table[0] * self._chains(table[1], table[2], table[3])

        def size_of(k: int) -> Size:
            return Size(*(int(column[k]) for column in table[:4]))

        of_steps, ais_chains, widths = table[0], table[3], table[4]
        enough = (widths <= _AIM * self._target) & (ais_chains >= LEAST_AIS_CHAINS)
        enough &= measured.log_variance_at(of_steps) <= _EVEN_VARIANCE
        cheapest = costs[enough].min() if enough.any() else math.inf
        self.needed = cheapest / (self._rate * _RESERVE) + _AFTERWARDS
        if enough.any():
            near = np.flatnonzero(enough & (costs <= _FLAT * cheapest))
            chosen = int(near[np.lexsort((costs[near], -of_steps[near]))[0]])
            if of_steps[chosen] > _FARTHEST * measured.steps:
                between = replace(
                    _MEASURING,
                    steps=round(_BETWEEN * measured.steps),
                    chains=most_chains,
                    examples=min(_MEASURING.examples, self.test_examples),
                )
                if self._cost(between) <= affordable / 2:  # the next one needs the rest
                    return between
            if costs[chosen] <= affordable:
                return size_of(chosen)
        best = int(np.argmin(np.where(costs <= affordable, widths, np.inf)))
        is_better = costs[best] <= affordable and widths[best] < _WORTH_IT * self._known
        return size_of(best) if is_better else None

    def _steps(self, measured: Measured) -> Counts:
        """Numbers of steps to choose from."""
        least = max(_LEAST_STEPS // 6, self._least_steps, measured.steps // 2)
        return np.unique(np.geomspace(least, _MOST_STEPS, 120).astype(int))


def _least_examples(chains: int, test_examples: int) -> int:
    return min(test_examples, max(25, min(50, 100 // chains)))


def _doubled(least: int, most: int) -> Counts:
    """least, 2 least, 4 least, … below most, and most."""
    powers = least * 2 ** np.arange(max(1, math.ceil(math.log2(max(1, most / max(1, least)))) + 1))
    return np.unique(np.minimum(powers, most))


def _shrink(values: Floats, factors: Floats) -> Floats:
    """Values (factor, example, chain) whose mean and variance are these times as large."""
    mean, factors = values.mean(), factors[:, np.newaxis, np.newaxis]
    return factors * mean + np.sqrt(factors) * (values - mean)
