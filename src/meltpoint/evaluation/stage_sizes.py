"""Sizes of the next stage: from what a stage has measured, the cheapest one that should be accurate enough.

With N - 1 forward chains the gap of an example is log((exp(g) + N - 1) / N), where g is the log of its reverse weight
over Z: the gap with one particle. Near equilibrium the mean of g and its variance over examples and chains fall as
1 / steps; the variance of AIS's log weights falls more slowly, because of its tail. Several melting chains of an
example are averaged before the logarithm is taken. A stage measures all of this, and the formulas here predict it for
other sizes; after two stages they use the power of the steps with which g really fell. These quick formulas search for
a size. The report's own formulas then predict the width of its interval, from weights resampled to that size. A size
only decides how long a stage takes: its estimates are unbiased for any size.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from meltpoint.estimators.ais import LogZ, log_z_of
from meltpoint.estimators.evidence import Start, Starts
from meltpoint.estimators.particles import Melted, particle_log_prob
from meltpoint.models.checks import Floats
from meltpoint.models.log_f import LogF
from meltpoint.results.compose import between_of, conservative_of
from meltpoint.stages.stage import Size
from meltpoint.statistics.elementary import expit, softplus
from meltpoint.statistics.log_space import log_mean_exp

AIM = 0.93
"""Share of the target that a predicted half width may have: predictions are not exact."""

WORTH_IT = 0.97
"""Share of the smallest half width so far that a stage must be predicted to reach to be worth running."""

LEAST_AIS_CHAINS = 500
"""Fewest AIS chains of a planned stage: fewer rarely meet the large weights that matter."""

LEAST_ESS = 20.0
"""Fewest effective chains from which widths are predicted: with fewer, they depend on one weight."""

_FARTHEST = 40.0  # largest ratio of steps over which the power law is trusted
_BETWEEN = 10.0  # ratio of steps of a stage that measures again, where the power law is not trusted
_SHARE_BETWEEN = 0.5  # largest share of what is affordable for such a stage: the next one needs the rest
_MOST_STEPS = 10_000_000
_LEAST_MELTED = 100  # chains of RAISE, but no fewer than 25 examples and no more than 50
_FIRST_AIS_CHAINS = 256  # AIS chains of a stage that only measures
_MOST_AIS_CHAINS = 128_000
_LEAST_STEPS = 50
_LEAST_FIRST_STEPS = 300  # with fewer neither the time nor the result of a stage can be predicted
_GENTLEST_POWER = 0.3
_VARIANCE_POWER = (
    0.7  # the variance of AIS's log weights falls as steps to the minus this: its tail falls last
)
_EVEN_VARIANCE = (
    2.0  # of AIS's log weights, at most: above it limits miss too often (docs/decisions/schedules.md)
)
_FLAT = 1.15  # sizes of up to this many times the least cost are equal: of them, more steps make a heavy tail lighter
_MOST_GROWTH = 4.0  # largest ratio of chains over which their spread is trusted
_GOLDEN = (5**0.5 - 1) / 2
_GROWTH = 1.05  # ratio of successive numbers of chains that are considered


@dataclass(frozen=True, eq=False)
class Measured:
    """What a stage of so many steps has measured.

    `log_ratios` (example, chain) are g; `deficits` (example, chain) what the start of a chain loses besides, as deep
    models do; `log_variance` is that of AIS's log weights. Means and variances fall as steps to the minus `power`; the
    deficits' only if they come from annealing (`heated`). `particles` is N, if it is limited, and
    `fixed_error` what no size makes smaller.
    """

    steps: int
    log_ratios: Floats
    deficits: Floats
    log_variance: float
    heated: bool = False
    particles: int | None = None
    fixed_error: float = 0.0
    power: float = 1.0

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

    def predict(self, steps: int, chains: int, ais_chains: int) -> tuple[float, float, float]:
        """Gap of a stage with so many particles, its variance over examples, and the share of AIS's error in it."""
        fallen = self.fallen(steps)
        g = _shrink(self.log_ratios, fallen)
        e = _shrink(self.deficits, fallen if self.heated else 1.0)
        others = ais_chains if self.particles is None else min(ais_chains, self.particles - 1)
        odds = (math.log(others) if others else -math.inf) - g
        terms = math.log(others + 1) - softplus(odds) - g - e  # log of estimates over p, by chain
        whole = terms.shape[1] // chains * chains
        grouped = terms[:, :whole].reshape(len(terms), -1, chains)
        gaps = -log_mean_exp(grouped)
        return (
            float(gaps.mean()),
            float(np.var(gaps[:, 0], ddof=1)) if len(gaps) > 1 else 0.0,
            1 - float(expit(odds).mean()),
        )

    def fallen(self, steps: int, power: float | None = None) -> float:
        """Means and variances at so many steps, as parts of those measured; with fewer steps they rise as 1 / steps."""
        power = self.power if power is None else power
        return (self.steps / steps) ** (power if steps > self.steps else 1.0)

    def log_variance_at(self, steps: int) -> float:
        """Variance of AIS's log weights with so many steps."""
        return self.log_variance * self.fallen(steps, _VARIANCE_POWER)

    def half_widths(
        self, steps: int, chains: int, ais_chains: int, examples: NDArray[np.integer], sigmas: float
    ) -> Floats:
        """Predicted half widths (number of examples,) of the interval; infinite where AIS has too few chains."""
        ais = math.expm1(min(self.log_variance_at(steps), 50.0)) / ais_chains  # variance of log Z
        if ais_chains / (1 + ais * ais_chains) < LEAST_ESS:
            return np.full(len(examples), np.inf)
        gap, spread, share = self.predict(steps, chains, ais_chains)
        # One standard error of this measurement on the safe side: a loss that chance has hidden would be met again.
        known = math.sqrt(spread / len(self.log_ratios))
        optimistic = ais + self.fixed_error**2
        conservative = spread / examples + (1 - share) ** 2 * ais + self.fixed_error**2
        return (max(gap, 0.0) + known + sigmas * (math.sqrt(optimistic) + np.sqrt(conservative))) / 2


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


def first_size(
    test_examples: int, passes: int, affordable: float, chains: int = 2, overhead: float = 0.0
) -> Size:
    """A stage to measure with: small, and a third at most of the chain-steps that are affordable.

    It has 300 steps even if nothing is affordable: what fewer would find is of no use, and takes hardly less time.
    """
    size = Size(2000, _least_examples(chains, test_examples), chains, _FIRST_AIS_CHAINS)
    share = min(1.0, affordable / 3 / (size.work(passes) + overhead * size.steps))
    return replace(size, steps=max(_LEAST_FIRST_STEPS, round(share * size.steps)))


def next_size(
    measured: Measured,
    target: float,
    sigmas: float,
    known: float,
    test_examples: int,
    passes: int,
    affordable: float,
    overhead: float = 0.0,
) -> Size | None:
    """A stage whose interval should be plus or minus the target, or the best that is affordable.

    Near the quickest one cost hardly depends on the steps: of those that cost little more, it has the most steps.
    `known` is half the width so far; None if no affordable stage would improve on it by enough to be worth it.
    `overhead` is what asking other starts costs, as a number of chains. Where RAISE's chains say what log f is
    (`heated`) there are as many for an example as were measured: from fewer its bias cannot be told.
    """
    most_chains = measured.log_ratios.shape[1]
    all_steps = np.unique(np.geomspace(max(_LEAST_STEPS, measured.steps // 2), _MOST_STEPS, 120).astype(int))
    all_ais_chains = [
        _FIRST_AIS_CHAINS,
        *np.geomspace(LEAST_AIS_CHAINS, _MOST_AIS_CHAINS, 29).astype(int).tolist(),
    ]
    enough: list[tuple[float, Size]] = []
    quickest = math.inf
    best: tuple[float, Size] | None = None
    for chains in range(most_chains if measured.heated else 1, most_chains + 1):
        examples = _doubled(_least_examples(chains, test_examples), test_examples)
        for ais_chains in all_ais_chains:
            for steps in all_steps.tolist():
                sizes = [Size(steps, n, chains, ais_chains) for n in examples.tolist()]
                if sizes[0].work(passes) + overhead * steps > _FLAT * quickest:
                    break  # more steps cost more
                even = measured.log_variance_at(steps) <= _EVEN_VARIANCE
                limits = measured.half_widths(steps, chains, ais_chains, examples, sigmas)
                for size, limit in zip(sizes, limits.tolist(), strict=True):
                    work = size.work(passes) + overhead * steps
                    if even and limit <= AIM * target and ais_chains >= LEAST_AIS_CHAINS:
                        enough.append((work, size))
                        quickest = min(quickest, work)
                    if work <= affordable and (best is None or limit < best[0]):
                        best = limit, size
    longest = max(
        (each for each in enough if each[0] <= _FLAT * quickest),
        key=lambda each: (each[1].steps, -each[0]),
        default=None,
    )
    if longest and longest[1].steps > _FARTHEST * measured.steps:
        least = _least_examples(most_chains, test_examples)
        between = Size(round(_BETWEEN * measured.steps), least, most_chains, _FIRST_AIS_CHAINS)
        if between.work(passes) <= _SHARE_BETWEEN * affordable:
            return between
    if longest and longest[0] <= affordable:
        return longest[1]
    return best[1] if best and best[0] < WORTH_IT * known else None


@dataclass(frozen=True, eq=False)
class Observed:
    """The weights of a stage, from which intervals of other sizes are predicted by the formulas of the report.

    `positions` (example,) are those of RAISE's examples in the test set, `starts` what other starts found, None if
    they were not asked.
    """

    size: Size
    forward: Floats
    melted: Melted
    positions: NDArray[np.integer]
    log_f: LogF
    starts: Starts | None
    measured: Measured

    def half_width(self, size: Size, alpha: float) -> float:
        """Half the width of the interval that a stage of this size should have, at this alpha.

        Weights are repeated or left out in proportion. With other steps their spread is as `measured` lets expect.
        """
        forward, reverse = self._at(size.steps)
        forward = _resampled(forward, size.ais_chains)
        chosen = np.arange(size.examples) * len(self.positions) // size.examples
        weights = self.melted.log_weights[chosen, : size.chains]
        melted = self.melted.log_reverse_weights[chosen, : size.chains]
        at = self._shift(melted - self._log_w, size.steps)
        # What an example's reverse weight gains its own weight loses: their sum is log f less the deficit.
        weights, melted = weights + melted - (self._log_w + at), self._log_w + at
        particles = self.measured.particles
        particles = None if particles is None else min(particles, size.ais_chains + 1)
        log_z = log_z_of(forward)
        evidence = reverse.evidence(forward) if reverse else None
        prob = particle_log_prob(weights, melted, forward, particles)
        conservative = conservative_of(prob, self.log_f, self.positions[chosen], log_z.ess - 1)
        low, high = between_of(self.log_f, log_z, conservative, evidence, alpha)
        return (high - low) / 2

    @property
    def _log_w(self) -> float:
        return float(log_mean_exp(self.forward))

    def _shift(self, ratios: Floats, steps: int) -> Floats:
        return ratios if steps == self.size.steps else _shrink(ratios, self.measured.fallen(steps))

    def _at(self, steps: int) -> tuple[Floats, Starts | None]:
        """Forward log weights (chain,) and other starts with so many steps."""
        if steps == self.size.steps:
            return self.forward, self.starts
        fallen = self.measured.fallen(steps, _VARIANCE_POWER)
        relative = _shrink(self.forward - self.forward.mean(), fallen)
        forward = relative - float(log_mean_exp(relative)) + self._log_w
        if self.starts is None:
            return forward, None
        starts = [
            Start(
                start.name,
                start.log_weights,
                self._log_w + self._shift(start.log_reverse_weights - self._log_w, steps),
            )
            for start in self.starts.starts
        ]
        return forward, replace(self.starts, starts=tuple(starts))


def grown_size(
    observed: Observed,
    target: float,
    alpha: float,
    known: float,
    test_examples: int,
    passes: int,
    affordable: float,
) -> tuple[float, Size] | None:
    """What the observed stage should grow to, and the half width of the interval that this should give.

    It is the least growth whose interval should be plus or minus the target, or the largest that is affordable, if that
    would improve on what is `known`. Chains per example stay.
    """
    size = observed.size
    if observed.half_width(size, alpha) <= AIM * target:
        return None
    count = round(math.log(_MOST_GROWTH) / math.log(_GROWTH))
    all_ais_chains = np.unique((size.ais_chains * _GROWTH ** np.arange(count + 1)).astype(int)).tolist()
    best: tuple[float, Size] | None = None
    least: tuple[int, float, Size] | None = None
    for examples in _doubled(size.examples, test_examples).tolist():
        sizes = [replace(size, examples=examples, ais_chains=chains) for chains in all_ais_chains]
        possible = [one for one in sizes if one.work(passes) - size.work(passes) <= affordable]
        if not possible:
            break
        # Widths fall with the number of chains.
        first = bisect_left(possible, True, key=lambda one: observed.half_width(one, alpha) <= AIM * target)
        chosen = possible[min(first, len(possible) - 1)]
        width, work = observed.half_width(chosen, alpha), chosen.work(passes)
        if chosen == size:  # nothing more is affordable
            continue
        if width <= AIM * target and (least is None or work < least[0]):
            least = work, width, chosen
        if best is None or width < best[0]:
            best = width, chosen
    if least is not None:
        return least[1:]
    return best if best and best[0] < WORTH_IT * known else None


def _resampled(values: Floats, n: int) -> Floats:
    """n of these values, each in its proportion, in an order that has nothing to do with them."""
    chosen = np.sort(values)[((np.arange(n) + 0.5) * len(values) / n).astype(int)]
    return chosen[np.argsort(np.arange(n) * _GOLDEN % 1.0, kind="stable")]


def _least_examples(chains: int, test_examples: int) -> int:
    return min(test_examples, max(25, min(50, _LEAST_MELTED // chains)))


def _shrink(values: Floats, factor: float) -> Floats:
    """Values whose mean and variance are `factor` times as large."""
    mean = values.mean()
    return factor * mean + math.sqrt(factor) * (values - mean)


def _doubled(least: int, most: int) -> NDArray[np.integer]:
    """least, 2 least, 4 least, … below most, and most."""
    powers = least * 2 ** np.arange(max(1, math.ceil(math.log2(max(1, most / least))) + 1))
    return np.unique(np.minimum(powers, most))
