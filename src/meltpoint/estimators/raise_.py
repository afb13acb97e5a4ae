"""RAISE, the reverse AIS estimator: test examples are melted back to the base (paper, section 3).

With N particles the forward chains of AIS take part: docs/raise-n.md has the derivation. N = 1 is the paper's.
This is not the "reverse AIS" that starts chains at model samples to bound log Z. RAISE starts at test
examples and bounds log p(v) from below, under the annealing model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.base import BaseLike
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.arguments import Count, Seed, Threads, public
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.tiles import anneal
from meltpoint.defaults import DEFAULTS
from meltpoint.errors import Progress
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.base_rates import resolve_base
from meltpoint.estimators.chain_batches import Annealing, PathWork
from meltpoint.estimators.particles import LogProb, check_forward, particle_log_prob
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats, States
from meltpoint.models.model import ModelLike
from meltpoint.randomness import Purpose
from meltpoint.runs.batch import CHUNK_SIZE, Batch, Items
from meltpoint.runs.run import Run


@dataclass(frozen=True, eq=False)
class RaiseWeights:
    """What melting gives.

    exp(log_weights) is unbiased for p_ann(v). exp(log_reverse_weights) is the AIS weight of the path that an example
    was melted along, as if a forward chain had taken it.
    """

    log_weights: Annotated[Floats, "example", "chain"]
    log_reverse_weights: Annotated[Floats, "example", "chain"]


@public
def raise_log_prob(
    model: ModelLike,
    x: ArrayLike,
    *,
    forward: LogZ | ArrayLike | None = None,
    particles: Count | None = None,
    base: BaseLike = None,
    steps: Steps = DEFAULTS.steps,
    chains: Count = DEFAULTS.chains,
    seed: Seed = 0,
    precision: Precision = "mixed",
    threads: Threads | None = None,
    progress: Progress | bool | None = None,
) -> LogProb:
    """Estimate log p(v) of every example from below, under the annealing model with these steps.

    exp(log_weights) is unbiased for p_N(v), the probability of v under the generative process "run N AIS chains,
    keep one of them in proportion to its weight, make one more move at beta 1": so the estimate of log p_N errs on
    the low side. Ctrl-C gives the estimates of the leading examples whose chains were all finished by then.

    Parameters
    ----------
    model
        Any model: an RBM, DBM or DBN, an Ising or Potts model, a factor graph.
    x
        Examples (example, visible unit).
    forward
        What `ais_log_z` found from the same base with the same steps and precision, or its log weights (chain,):
        the forward chains of the N particles, shared by all examples. Without them N is 1, the paper's estimator.
    particles
        N. Default: one more than there are forward chains. A smaller N forms groups of N - 1 forward chains and
        averages over them; 1 leaves them out.
    base
        The base distribution, or its name: "uniform" (the default) or "model".
    steps
        A number of equal steps, or the betas.
    chains
        Melting chains per example.
    seed, precision, threads, progress
        As in `ais_log_z`.

    >>> from meltpoint.estimators.ais import ais_log_z
    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[1.0, -2.0], [0.5, 1.0]], [0.0, 0.1], [0.2, 0.0])
    >>> forward = ais_log_z(rbm, steps=100, chains=50)
    >>> raise_log_prob(rbm, [[0, 1], [1, 1]], steps=100, chains=2, forward=forward).particles
    51
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    states = model.encode(x)
    betas, run = as_betas(steps), Run(threads, progress)
    annealing = Annealing(model, resolve_base(base, model, run, seed=seed), precision)
    if isinstance(forward, LogZ):
        forward.check_path(annealing.digest(betas))
    others = check_forward(forward.log_weights if isinstance(forward, LogZ) else forward, particles)
    (found,), _ = run.results_so_far([raise_batch(annealing, betas, states, chains, seed)], "RAISE")
    n = len(states) if found.complete else int(np.argmin(found.finished))
    if n == 0 or found.values is None:
        raise KeyboardInterrupt
    weights = found.values
    return particle_log_prob(weights.log_weights[:n], weights.log_reverse_weights[:n], others, particles)


@dataclass(frozen=True, eq=False)
class MeltingChains(PathWork):
    """Chains of RAISE, `chains` for each example's state (example, visible unit), numbered from `first_number` on."""

    betas: Floats
    states: States
    chains: int
    seed: int
    first_number: int = 0

    def compute(self, items: Items, progress: Progress) -> RaiseWeights:
        """Log weights of some of the examples. A weight does not depend on what is run with it."""
        numbers = self.first_number + np.arange(self.chains)
        keys = np.stack(np.meshgrid(items, numbers, indexing="ij"), axis=-1).reshape(-1, 2)
        visible = np.repeat(self.states[items], self.chains, axis=0)
        model, path = self.annealing.model, self.annealing.path
        start = model.raise_start(path, visible, self.betas, self.seed, keys)
        streams = Streams(self.seed, Purpose.RAISE, keys)
        run = anneal(self.annealing.prepared, start.segments, start.state, streams, progress=progress)
        cumulative = run.cumulative_log_weights
        melted = cumulative[:, -1] - cumulative[:, -2] if len(start.segments) > 1 else cumulative[:, -1]
        shape = len(items), self.chains
        return RaiseWeights(
            (start.log_weights + run.log_weights).reshape(shape),
            (self.annealing.log_z_base - melted).reshape(shape),
        )


def raise_batch(
    annealing: Annealing, betas: Floats, states: States, chains: int, seed: int, first_number: int = 0
) -> Batch[RaiseWeights]:
    """RAISE of examples with these states (example, visible unit)."""
    work = MeltingChains(annealing, betas, states, chains, seed, first_number)
    steps = float(chains * annealing.model.raise_passes * (betas.size - 1))
    return Batch("raise", work, len(states), steps, max(1, CHUNK_SIZE // chains))
