"""CSL, the conservative sampling-based log-likelihood (Bengio, Yao and Cho 2013), which the paper compares with.

Gibbs chains give samples h of the lowest hidden layer, and p(v) = E[p(v | h)] is estimated by their mean. The
estimate of log p(v) errs on the low side, by tens of nats where the examples are many and the samples are not:
a test example needs a sample that explains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.base import BaseLike
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.schedule import as_betas
from meltpoint.arguments import Count, Seed, Threads, public
from meltpoint.backends.tiles import anneal
from meltpoint.defaults import CSL_CHAINS, DEFAULTS
from meltpoint.errors import Progress
from meltpoint.estimators.base_rates import resolve_base
from meltpoint.estimators.chain_batches import Annealing, PathWork, chain_keys
from meltpoint.estimators.particles import LogProb
from meltpoint.kernels.ordered import ordered_product
from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.kernels.streams import Streams, next_uniforms
from meltpoint.layers.unit import Floats, States
from meltpoint.models.model import ModelLike
from meltpoint.randomness import Purpose
from meltpoint.runs.batch import Batch, Items
from meltpoint.runs.run import Run
from meltpoint.statistics.elementary import log, log_add_exp
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp

EVERY = 20
"""Moves from one sample to the next; states in between are strongly correlated. (The authors of CSL take 100.)"""

_BURN_IN = 10  # one move in ten is spent on annealing from the base to the model


@public
def csl_log_prob(
    model: ModelLike,
    x: ArrayLike,
    *,
    base: BaseLike = None,
    steps: Count = DEFAULTS.steps,
    chains: Count = CSL_CHAINS,
    every: Count = EVERY,
    seed: Seed = 0,
    threads: Threads | None = None,
    progress: Progress | bool | None = None,
) -> LogProb:
    """Estimate log p(v) of every example from below, as the mean of p(v | h) over samples h of the model.

    Each chain makes `steps` Gibbs moves, like an AIS chain of as many steps: the first tenth while it is
    annealed from the base, the others in the model. One sample is taken every `every` moves in the model. The
    log weights (example, chain) of the result are each chain's own estimates, and memory does not grow with the
    number of samples. The estimate is conservative if the chains are samples of the model.

    Parameters
    ----------
    model
        Any model: an RBM, DBM or DBN, an Ising or Potts model, a factor graph.
    x
        Examples (example, visible unit).
    base
        Where the chains start: a base distribution, or its name, "uniform" (the default) or "model".
    steps
        Gibbs moves of each chain.
    chains
        Independent chains.
    every
        Moves from one sample to the next.
    seed, threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[1.0, -2.0], [0.5, 1.0]], [0.0, 0.1], [0.2, 0.0])
    >>> csl_log_prob(rbm, [[0, 1], [1, 1]], steps=50, chains=10).values.shape
    (2,)
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    states = model.encode(x)
    run = Run(threads, progress)
    annealing = Annealing(model, resolve_base(base, model, run, seed=seed), "float32")
    burn_in = -(-steps // _BURN_IN)
    moves = min(every, max(1, steps - burn_in))
    samples = max(1, (steps - burn_in) // moves)
    work = SamplingChains(annealing, states, burn_in, moves, samples, seed)
    found = run.results(Batch("csl", work, chains, float(steps)), "CSL")
    log_weights = found.log_weights.T
    return LogProb(log_mean_exp(log_weights), log_mean_error(log_weights), log_weights)


@dataclass(frozen=True, eq=False)
class ChainEstimates:
    """Each chain's own estimates of log p(v)."""

    log_weights: Annotated[Floats, "chain", "example"]


@dataclass(frozen=True, eq=False)
class SamplingChains(PathWork):
    """Gibbs chains, and the examples' states (example, visible unit) that their samples give probabilities to.

    After `burn_in` moves from base to model each takes one sample every `moves` moves.
    """

    states: States
    burn_in: int
    moves: int
    samples: int
    seed: int

    def compute(self, items: Items, progress: Progress) -> ChainEstimates:
        model, prepared = self.annealing.model, self.annealing.prepared
        generators = Streams(self.seed, Purpose.CSL, chain_keys(items, 0)).generators()
        state = self.annealing.anywhere(len(items))
        sums = np.full((len(items), len(self.states)), -np.inf)
        for k in range(self.samples):
            in_model = Segment(np.ones(self.moves + 1))
            segments = [in_model] if k else [Segment(as_betas(self.burn_in)), in_model]
            streams = Streams(self.seed, Purpose.CSL, chain_keys(items, k + 1))  # 0: the hidden draws
            state = anneal(prepared, segments, state, streams).state
            log_odds = model.visible_log_odds(state, lambda count: next_uniforms(generators, count))
            # log p(v | h) (example, chain): v·log_odds - sum of softplus(log_odds), a product for all pairs at once.
            log_probs = ordered_product(self.states, log_odds.T) - sum_softplus(log_odds)
            sums = log_add_exp(sums, log_probs.T)
            progress("CSL", float(k + 1), float(self.samples))
        return ChainEstimates(sums - log(self.samples))
