"""How much to run next: from what a stage has measured, the quickest one that should be accurate enough.

With N - 1 forward chains the gap of an example is log((exp(g) + N - 1) / N), where g is the log of its reverse weight
over Z: the gap with one particle. Near equilibrium the mean of g and its variance over examples and chains fall as
1 / steps, and so does the variance of AIS's log weights. Several melting chains for an example are averaged before the
logarithm. All of it is measured in a stage and computed for stages of other sizes; from two stages on the power of the
steps with which g really fell is used too. The size that follows is a guess about the time a stage takes, nothing else:
estimates are unbiased for any.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.particles import Melted
from meltpoint.evaluation.stage import Size
from meltpoint.models.checks import Floats
from meltpoint.statistics.log_space import log_mean_exp

_AIM = 0.92  # of the target: predictions are not exact
_FARTHEST = 40.0  # times the steps of a stage: so far its power law is trusted
_BETWEEN = 10.0  # times the steps of a stage: where to measure again if that is not far enough
_SHARE_BETWEEN = 0.5  # of what is affordable: it is for the next stage that one measures
_MOST_STEPS = 10_000_000
_LEAST_EXAMPLES = 50
_FIRST_AIS_CHAINS = 128  # of the stage that measures
_LEAST_AIS_CHAINS = 1000  # of the others: fewer rarely see the large weights that matter
_MOST_AIS_CHAINS = 32_000
_LEAST_ESS = 20.0
_LEAST_STEPS = 50
_GENTLEST_POWER = 0.3
_WORTH_IT = 0.97  # of the half width that is known: a stage that gains less is not run


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
        if earlier.steps >= self.steps:
            return earlier
        if min(self.loss, earlier.loss) <= 0:
            return self
        fallen = math.log(earlier.loss / self.loss) / math.log(self.steps / earlier.steps)
        return replace(self, power=float(np.clip(fallen, _GENTLEST_POWER, 1.0)))

    def predict(self, steps: int, chains: int, ais_chains: int) -> tuple[float, float, float]:
        """Gap of a stage with so many particles, its variance over examples, and the share of AIS's error in it."""
        fallen = self._fallen(steps)
        g = _shrink(self.log_ratios, fallen)
        e = _shrink(self.deficits, fallen if self.heated else 1.0)
        others = ais_chains if self.particles is None else min(ais_chains, self.particles - 1)
        odds = (math.log(others) if others else -math.inf) - g
        terms = math.log(others + 1) - np.logaddexp(0.0, odds) - g - e  # log of estimates over p, by chain
        whole = terms.shape[1] // chains * chains
        grouped = terms[:, :whole].reshape(len(terms), -1, chains)
        gaps = -log_mean_exp(grouped)
        return (
            float(gaps.mean()),
            float(np.var(gaps[:, 0], ddof=1)) if len(gaps) > 1 else 0.0,
            1 - float(expit(odds).mean()),
        )

    def _fallen(self, steps: int) -> float:
        """Means and variances at so many steps, as parts of those measured; with fewer steps they rise as 1 / steps."""
        return (self.steps / steps) ** (self.power if steps > self.steps else 1.0)

    def half_widths(
        self, steps: int, chains: int, ais_chains: int, examples: NDArray[np.integer], sigmas: float
    ) -> Floats:
        """Predicted half widths (number of examples,) of the interval; infinite where AIS has too few chains."""
        fallen = self._fallen(steps)
        ais = math.expm1(min(self.log_variance * fallen, 50.0)) / ais_chains  # variance of log Z
        if ais_chains / (1 + ais * ais_chains) < _LEAST_ESS:
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
    """What RAISE's log weights (example, chain), log f (example,) of the same examples, and AIS's weights say."""
    log_ratios = melted.log_reverse_weights - log_z.value
    deficits = log_f[:, np.newaxis] - melted.log_reverse_weights - melted.log_weights
    # Of lognormal weights both are the variance; a heavy tail shows in the second.
    log_variance = max(float(np.var(log_z.log_weights, ddof=1)), math.log(len(log_z.log_weights) / log_z.ess))
    return Measured(steps, log_ratios, deficits, log_variance, heated, particles, fixed_error)


def first_size(test_examples: int, segments: int, affordable: float, chains: int = 2) -> Size:
    """A stage to measure with: small, and a third at most of the chain-steps that are affordable."""
    size = Size(2000, min(_LEAST_EXAMPLES, test_examples), chains, _FIRST_AIS_CHAINS)
    share = min(1.0, affordable / 3 / size.work(segments))
    return replace(size, steps=max(_LEAST_STEPS, round(share * size.steps)))


def next_size(
    measured: Measured,
    target: float,
    sigmas: float,
    known: float,
    test_examples: int,
    segments: int,
    affordable: float,
) -> Size | None:
    """The quickest stage whose interval should be plus or minus the target, or the best that is affordable.

    `known` is half the width so far; None if no affordable stage would improve on it by enough to be worth it.
    """
    all_steps = np.unique(np.geomspace(max(_LEAST_STEPS, measured.steps // 2), _MOST_STEPS, 160).astype(int))
    examples = _doubled(min(_LEAST_EXAMPLES, test_examples), test_examples)
    all_ais_chains = [
        _FIRST_AIS_CHAINS,
        *np.geomspace(_LEAST_AIS_CHAINS, _MOST_AIS_CHAINS, 21).astype(int).tolist(),
    ]
    quickest: tuple[float, Size] | None = None
    best: tuple[float, Size] | None = None
    for chains in range(1, measured.log_ratios.shape[1] + 1):
        for ais_chains in all_ais_chains:
            for steps in all_steps.tolist():
                sizes = [Size(steps, n, chains, ais_chains) for n in examples.tolist()]
                if quickest and sizes[0].work(segments) > quickest[0]:
                    break  # more steps cost more
                limits = measured.half_widths(steps, chains, ais_chains, examples, sigmas)
                for size, limit in zip(sizes, limits.tolist(), strict=True):
                    work = size.work(segments)
                    enough = limit <= _AIM * target and ais_chains >= _LEAST_AIS_CHAINS
                    if enough and (quickest is None or work < quickest[0]):
                        quickest = work, size
                    if work <= affordable and (best is None or limit < best[0]):
                        best = limit, size
    if quickest and quickest[1].steps > _FARTHEST * measured.steps:
        chains = measured.log_ratios.shape[1]
        between = Size(round(_BETWEEN * measured.steps), int(examples[0]), chains, _FIRST_AIS_CHAINS)
        if between.work(segments) <= _SHARE_BETWEEN * affordable:
            return between
    if quickest and quickest[0] <= affordable:
        return quickest[1]
    return best[1] if best and best[0] < _WORTH_IT * known else None


def _shrink(values: Floats, factor: float) -> Floats:
    """Values whose mean and variance are `factor` times as large."""
    mean = values.mean()
    return factor * mean + math.sqrt(factor) * (values - mean)


def _doubled(least: int, most: int) -> NDArray[np.integer]:
    """least, and twice as many, and so on up to and with most."""
    powers = least * 2 ** np.arange(max(1, math.ceil(math.log2(max(1, most / least))) + 1))
    return np.unique(np.minimum(powers, most))
