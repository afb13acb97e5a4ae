"""RAISE, the reverse AIS estimator: test examples are melted back to the base (paper, section 3).

With N particles the forward chains of AIS take part: docs/raise-n.md has the derivation. N = 1 is the paper's.
This is not the "reverse AIS" that starts chains at model samples to bound log Z. RAISE starts at test
examples and bounds log p(v) from below, under the annealing model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.base import Base, BaseName
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.tiles import anneal
from meltpoint.defaults import DEFAULTS
from meltpoint.errors import Progress
from meltpoint.estimators.ais import LogZ, path_digest
from meltpoint.estimators.base_rates import resolve_base
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.estimators.particles import LogProb, check_forward, particle_log_prob
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.checks import check_count
from meltpoint.models.model import Model, ModelLike
from meltpoint.progress import reports_progress
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


@reports_progress
def raise_log_prob(
    model: ModelLike,
    x: ArrayLike,
    *,
    forward: LogZ | ArrayLike | None = None,
    particles: int | None = None,
    base: Base | BaseName | None = None,
    steps: Steps = DEFAULTS.steps,
    chains: int = DEFAULTS.chains,
    seed: int = 0,
    precision: Precision = "mixed",
    threads: int | None = None,
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
    assert not isinstance(progress, bool), "reports_progress has made a callback of it"
    chains = check_count(chains, "chains", "1 is enough with many steps, the paper uses 50")
    states = model.encode(x)
    betas = as_betas(steps)
    own_base = resolve_base(base, model, seed=seed, threads=threads, progress=progress)
    annealing = Annealing(model, own_base, precision)
    if isinstance(forward, LogZ):
        forward.check_path(path_digest(model, own_base, betas, precision))
    others = check_forward(forward.log_weights if isinstance(forward, LogZ) else forward, particles)
    batch = raise_batch(annealing, betas, states, chains, seed)
    (found,), _ = Run(threads, progress).results_so_far([batch], "RAISE")
    n = len(states) if found.complete else int(np.argmin(found.finished))
    if n == 0 or found.values is None:
        raise KeyboardInterrupt
    weights = found.values
    return particle_log_prob(weights.log_weights[:n], weights.log_reverse_weights[:n], others, particles)


@dataclass(frozen=True, eq=False)
class MeltingChains:
    """Chains of RAISE, `chains` for each example's state (example, visible unit), numbered from `first_number` on."""

    annealing: Annealing
    betas: Floats
    states: Bits
    chains: int
    seed: int
    first_number: int = 0

    def prepare(self, progress: Progress | None) -> None:
        self.annealing.prepare(progress)

    def compute(self, items: Items, progress: Progress) -> RaiseWeights:
        return run_raise(
            self.annealing.model,
            self.annealing.prepared,
            self.betas,
            self.states[items],
            items,
            self.first_number + np.arange(self.chains),
            self.seed,
            progress=progress,
        )


def raise_batch(
    annealing: Annealing, betas: Floats, states: Bits, chains: int, seed: int, first_number: int = 0
) -> Batch[RaiseWeights]:
    """RAISE of examples with these states (example, visible unit)."""
    work = MeltingChains(annealing, betas, states, chains, seed, first_number)
    steps = float(chains * annealing.model.raise_passes * (betas.size - 1))
    return Batch("raise", work, len(states), steps, max(1, CHUNK_SIZE // chains))


def run_raise(
    model: Model,
    prepared: PreparedPath,
    betas: Floats,
    states: Bits,
    examples: NDArray[np.integer],
    chains: NDArray[np.integer],
    seed: int,
    *,
    progress: Progress | None = None,
) -> RaiseWeights:
    """Melt examples: their log weights.

    `states` (example, visible unit), from `model.encode`, are those of the examples with the numbers `examples`
    (example,); each is melted by the chains with the numbers `chains` (chain,). A weight does not depend on what is run
    with it.
    """
    keys = np.stack(np.meshgrid(examples, chains, indexing="ij"), axis=-1).reshape(-1, 2)
    visible = np.repeat(states, len(chains), axis=0)
    start = model.raise_start(prepared.path, visible, betas, seed, keys)
    run = anneal(
        prepared,
        start.segments,
        start.state,
        Streams(seed, Purpose.RAISE, keys),
        progress=progress,
        task="RAISE",
    )
    shape = len(examples), len(chains)
    cumulative = run.cumulative_log_weights
    melted = cumulative[:, -1] - cumulative[:, -2] if len(start.segments) > 1 else cumulative[:, -1]
    log_z_base = prepared.path.log_z_base + prepared.path.log_constant
    return RaiseWeights(
        (start.log_weights + run.log_weights).reshape(shape),
        (log_z_base - melted).reshape(shape),
    )
