"""How much to run next: from what a stage has measured, the quickest one that should close the gap.

Near equilibrium whatever RAISE loses falls as 1 / steps, and so do the variances of the log weights; twice the
chains for an example halve the variance at most, and what is lost to too few steps not at all. How much either
helps is measured: the loss with 1, 2, … of the chains of a stage, the spread over examples, the spread of AIS, and
from two stages on the power of the steps with which the loss really fell. The allocation that follows is a guess
about the time a stage takes, nothing else: estimates are unbiased for any.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from meltpoint.estimators.ais import LogZ
from meltpoint.evaluation.case import Size
from meltpoint.models.checks import Floats
from meltpoint.statistics.log_space import log_mean_exp

_AIM = 0.85  # of the target: predictions are not exact
_FARTHEST = 40.0  # times the steps of a stage: so far its power law is trusted
_BETWEEN = 10.0  # times the steps of a stage: where to measure again if that is not far enough
_SHARE_BETWEEN = 0.5  # of what is affordable: it is for the next stage that one measures
_MOST_STEPS = 10_000_000
_LEAST_EXAMPLES = 50
_LEAST_AIS_CHAINS = 64
_LEAST_ESS = 20.0
_LEAST_STEPS = 50
_GENTLEST_POWER = 0.3
_WORTH_IT = 0.9  # of the upper limit that is known: a stage that gains less is not run


@dataclass(frozen=True)
class Measured:
    """What a stage of so many steps has measured.

    `losses` (count,) are the distances of RAISE with 1, 2, … chains from AIS and `spreads` (count,) its variances
    over examples; `log_variance` is that of AIS's log weights; `fixed_error` is what more chains do not make
    smaller. Losses and variances fall as steps to the minus `power`.
    """

    steps: int
    losses: Floats
    spreads: Floats
    log_variance: float
    fixed_error: float = 0.0
    power: float = 1.0

    def after(self, earlier: "Measured | None") -> "Measured":
        """The same with the power that this and an earlier stage show together."""
        if earlier is None or earlier.steps >= self.steps or min(self.losses[0], earlier.losses[0]) <= 0:
            return self
        fallen = math.log(earlier.losses[0] / self.losses[0]) / math.log(self.steps / earlier.steps)
        return replace(self, power=float(np.clip(fallen, _GENTLEST_POWER, 1.0)))

    def upper(
        self,
        steps: NDArray[np.integer],
        examples: NDArray[np.integer],
        chains: NDArray[np.integer],
        ais_chains: NDArray[np.integer],
        sigmas: float,
    ) -> Floats:
        """Predicted upper limits of the gap; infinite where AIS would rest on too few chains."""
        fallen = (self.steps / steps) ** self.power
        ais = np.expm1(np.minimum(self.log_variance * fallen, 50.0)) / ais_chains  # variance of log Z
        noise = self.spreads[chains - 1] * fallen / examples + ais + self.fixed_error**2
        limit = self.losses[chains - 1] * fallen + ais / 2 + sigmas * np.sqrt(noise)
        return np.where(ais_chains / (1 + ais * ais_chains) >= _LEAST_ESS, limit, np.inf)


def measure(
    log_weights: Floats, log_f: Floats, log_z: LogZ, steps: int, fixed_error: float = 0.0
) -> Measured:
    """What RAISE's log weights (example, chain), with log f (example,) of the same examples, and AIS's say."""
    chains = log_weights.shape[1]
    losses, spreads = np.empty(chains), np.empty(chains)
    for k in range(chains):
        blocks = log_weights[:, : chains // (k + 1) * (k + 1)].reshape(len(log_weights), -1, k + 1)
        missing = (log_f - log_z.value)[:, np.newaxis] - log_mean_exp(blocks)
        spreads[k] = np.var(missing[:, 0], ddof=1)
        # One standard error on the safe side: a loss that chance has hidden would be met again.
        losses[k] = max(0.0, missing.mean()) + math.sqrt(spreads[k] / len(missing))
    return Measured(steps, losses, spreads, float(np.var(log_z.log_weights, ddof=1)), fixed_error)


def first_size(test_examples: int, legs: int, affordable: float) -> Size:
    """A stage to measure with: small, and a third at most of the chain-steps that are affordable."""
    size = Size(2000, min(_LEAST_EXAMPLES, test_examples), 3, 2 * _LEAST_AIS_CHAINS)
    share = min(1.0, affordable / 3 / size.work(legs))
    return replace(size, steps=max(_LEAST_STEPS, round(share * size.steps)))


def next_size(
    measured: Measured,
    target: float,
    sigmas: float,
    known: float,
    test_examples: int,
    legs: int,
    affordable: float,
) -> Size | None:
    """The quickest stage that should bring the upper limit below the target, or the best that is affordable.

    `known` is the upper limit so far; None if no affordable stage would improve on it by enough to be worth it.
    """
    steps = np.geomspace(_LEAST_STEPS, _MOST_STEPS, 300).astype(int)
    examples = _doubled(min(_LEAST_EXAMPLES, test_examples), test_examples)
    chains = np.arange(1, measured.losses.size + 1)
    ais_chains = _doubled(_LEAST_AIS_CHAINS, 8192)
    k, n, c, a = np.meshgrid(steps, examples, chains, ais_chains, indexing="ij")
    limit = measured.upper(k, n, c, a, sigmas)
    work = (k * (n * c * legs + a)).astype(np.float64)
    enough = limit <= _AIM * target
    best = np.argmin(np.where(enough, work, np.inf))  # the first, if none is enough
    if enough.any() and k.flat[best] > _FARTHEST * measured.steps:
        between = Size(round(_BETWEEN * measured.steps), int(examples[0]), int(chains[-1]), _LEAST_AIS_CHAINS)
        if between.work(legs) <= _SHARE_BETWEEN * affordable:
            return between
    if not (enough.any() and work.flat[best] <= affordable):
        limit = np.where(work <= affordable, limit, np.inf)
        best = np.argmin(limit)
        if not limit.flat[best] < _WORTH_IT * known:
            return None
    return Size(*(int(axis.flat[best]) for axis in (k, n, c, a)))


def _doubled(least: int, most: int) -> NDArray[np.integer]:
    """least, and twice as many, and so on up to and with most."""
    powers = least * 2 ** np.arange(max(1, math.ceil(math.log2(max(1, most / least))) + 1))
    return np.unique(np.minimum(powers, most))
