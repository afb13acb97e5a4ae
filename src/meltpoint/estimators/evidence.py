"""Evidence on missed modes: what other starts found, and whether the chosen path reaches it.

N forward chains along the chosen path A have weights w_1, …, w_N, each unbiased for Z. A state x of the model that is
melted back along A has the weight w_rev(x) = Z_0 / exp(log_w_melt), and for x ~ p and N - 1 forward chains

    E[ N / (w_rev(x) + w_2 + … + w_N) ] = 1 / Z                                                    (1)

(the generative model "run N chains, keep one in proportion to its weight" has p_N(x) / f(x) on the left, given x; it
sums to one). With the mean forward weight W and the *reach* of a state

    r(x) = N / (w_rev(x) / W + N - 1),    0 < r <= N / (N - 1),

this reads E[r(x) / W] = 1 / Z: on average the reach is the share W / Z of the model's mass that the N chains have
found. A state in a mode that no chain visits has w_rev >> N W and a reach of 0; where AIS works the reach is 1.

Another start B gives states x_i with weights u_i that are properly weighted: E[u g(x)] = Z E_p[g(x)] for any g. So

    D = mean of u_i (1 - r(x_i)) is unbiased for Z - W (on average over A's chains),

the mass that A lacks, and as a mean of weights it errs low: what B misses too is not in it. A lacks log(1 + D / W)
nats of log Z. Starts that share the space between them (`shares`, non-negative and summing to one at every state) may
be added up: the sum over starts of the mean of u_i share(x_i) (1 - r(x_i)) is unbiased for the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from meltpoint.annealing.anneal import Leg, anneal
from meltpoint.annealing.base import Base, family_of
from meltpoint.annealing.streams import chain_generators
from meltpoint.errors import Progress
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.log_space import effective_sample_size, log_mean_exp

_PURPOSE = Purpose.PILOT  # with keys of four numbers, which the pilot does not use
_FORWARD, _MELT, _CHOICE = 1000, 1001, 1002
_MOVES = 5  # at beta 1, after annealing


@dataclass(frozen=True, eq=False)
class Start:
    """Chains annealed from one base: log weights (chain,), each unbiased for Z, and end states (chain, even unit)."""

    base: Base
    log_weights: Floats
    states: Bits

    @property
    def log_z(self) -> float:
        """The estimate of log Z: a stochastic lower bound."""
        return float(log_mean_exp(self.log_weights))

    @property
    def ess(self) -> float:
        """Effective sample size."""
        return float(effective_sample_size(self.log_weights))


def run_start(
    model: Model,
    base: Base,
    betas: Floats,
    chains: int,
    *,
    number: int,
    seed: int = 0,
    moves: int = _MOVES,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Start:
    """Anneal chains from a base and make some moves at beta 1, which leaves them properly weighted.

    `number` tells starts apart: no two may share random numbers.
    """
    family = family_of(model, base)
    run = anneal(
        family,
        [Leg(betas), Leg(np.ones(moves + 1))],
        np.zeros((chains, family.target.n_even), np.uint8),
        chain_generators(seed, _PURPOSE, _keys(_FORWARD, number, chains)),
        threads=threads,
        progress=progress,
        task="other starts",
    )
    if not run.finished.all():
        raise KeyboardInterrupt
    return Start(base, run.log_weights + family.log_z_base, run.state)


def reverse_log_weights(
    model: Model,
    base: Base,
    betas: Floats,
    states: Bits,
    *,
    number: int,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Floats:
    """log w_rev (state,) of states (state, even unit) melted back along the path from a base, one chain each."""
    family = family_of(model, base)
    run = anneal(
        family,
        [Leg(betas[::-1].copy())],
        states,
        chain_generators(seed, _PURPOSE, _keys(_MELT, number, len(states))),
        threads=threads,
        progress=progress,
        task="melting other starts",
    )
    if not run.finished.all():
        raise KeyboardInterrupt
    return family.log_z_base - run.log_weights


def log_reach(forward: Floats, reverse: Floats) -> Floats:
    """log r (state,) of states with reverse log weights (state,) under forward log weights (chain,) of one path.

    >>> log_reach(np.zeros(100), np.array([0.0, np.log(101.0), 50.0])).round(2)
    array([  0.  ,  -0.69, -45.39])
    """
    n = len(forward)
    relative = reverse - log_mean_exp(forward)
    others = np.full_like(relative, math.log(n - 1)) if n > 1 else np.full_like(relative, -np.inf)
    return math.log(n) - np.logaddexp(relative, others)


def choose_by_weight(log_weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """Positions (count,) drawn in proportion to weights (chain,) with equal spacing: each count is within 1 of its mean.

    >>> choose_by_weight(np.log([0.5, 0.25, 0.25]), 4, np.random.default_rng(0))
    array([0, 0, 1, 2])
    """
    spent = np.cumsum(np.exp(log_weights - logsumexp(log_weights)))
    return np.minimum(np.searchsorted(spent / spent[-1], (np.arange(count) + rng.random()) / count), len(spent) - 1)


def _keys(direction: int, number: int, chains: int) -> NDArray[np.integer]:
    keys = np.empty((chains, 4), np.int64)
    keys[:] = direction, number, 0, 0
    keys[:, 3] = np.arange(chains)
    return keys
