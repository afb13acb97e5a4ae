"""RAISE, the reverse AIS estimator: test examples are melted back to the base (paper, section 3).

With N particles the forward chains of AIS take part: docs/raise-n.md has the derivation. N = 1 is the paper's.
This is not the "reverse AIS" that starts chains at model samples to bound log Z. RAISE starts at test
examples and bounds log p(v) from below, under the annealing model.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.anneal import Leg, anneal
from meltpoint.annealing.base import Base, family_of, uniform
from meltpoint.annealing.family import Family
from meltpoint.annealing.kernels.ordered import sum_rows
from meltpoint.annealing.precision import Precision, Walk
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.annealing.streams import chain_generators
from meltpoint.errors import Progress
from meltpoint.estimators.ais import LogZ, path_digest
from meltpoint.estimators.checks import check_count
from meltpoint.estimators.particles import LogProb, check_forward, particle_log_prob
from meltpoint.models import Model
from meltpoint.models.bipartite import softplus
from meltpoint.models.checks import Bits, Floats, binary
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.randomness import Purpose, generator


class RaiseWeights(NamedTuple):
    """What melting gives: log weights and log reverse weights (example, chain), finished examples (example,).

    exp(log_weights) is unbiased for p_ann(v). exp(log_reverse_weights) is the AIS weight of the path that an example
    was melted along, as if a forward chain had walked it.
    """

    log_weights: Floats
    log_reverse_weights: Floats
    finished: NDArray[np.bool_]


def raise_log_prob(
    model: Model,
    x: ArrayLike,
    *,
    forward: LogZ | ArrayLike | None = None,
    particles: int | None = None,
    base: Base | None = None,
    steps: Steps = 3000,
    chains: int = 4,
    seed: int = 0,
    precision: Precision = "mixed",
    threads: int | None = None,
    progress: Progress | None = None,
) -> LogProb:
    """Estimate log p(v) of every example from below, under the annealing model with these steps.

    exp(log_weights) is unbiased for p_N(v), the probability of v under the generative process "run N AIS chains,
    keep one of them in proportion to its weight, make one more move at beta 1": so the estimate of log p_N errs on
    the low side. Ctrl-C gives the estimates of the leading examples whose chains were all finished by then.

    Parameters
    ----------
    model
        An RBM, DBM or DBN.
    x
        Examples (example, visible unit).
    forward
        What `ais_log_z` found from the same base with the same steps and precision, or its log weights (chain,):
        the forward chains of the N particles, shared by all examples. Without them N is 1, the paper's estimator.
    particles
        N: by itself one more than there are forward chains. A smaller N forms groups of N - 1 forward chains and
        averages over them; 1 leaves them out.
    base
        The base distribution, uniform by itself.
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
    chains = check_count(chains, "chains", "1 is enough with many steps, the paper uses 50")
    bits = binary(x, "x", model.n_visible)
    betas = as_betas(steps)
    family = family_of(model, base or uniform())
    if isinstance(forward, LogZ):
        forward.check_path(path_digest(family, betas, precision))
    others = check_forward(forward.log_weights if isinstance(forward, LogZ) else forward, particles)
    found = raise_weights(
        model,
        family,
        betas,
        bits,
        np.arange(len(bits)),
        np.arange(chains),
        seed,
        precision=precision,
        threads=threads,
        progress=progress,
    )
    n = len(bits) if found.finished.all() else int(np.argmin(found.finished))
    if n == 0:
        raise KeyboardInterrupt
    return particle_log_prob(found.log_weights[:n], found.log_reverse_weights[:n], others, particles)


def raise_weights(
    model: Model,
    family: Family,
    betas: Floats,
    bits: Bits,
    examples: NDArray[np.integer],
    chains: NDArray[np.integer],
    seed: int,
    *,
    precision: Precision = "mixed",
    walk: Walk | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RaiseWeights:
    """Melt examples: their log weights, and which of them have all their chains finished.

    `bits` (example, visible unit) are the examples with the numbers `examples` (example,); each is melted by the
    chains with the numbers `chains` (chain,). A weight does not depend on what is run with it.
    """
    keys = np.stack(np.meshgrid(examples, chains, indexing="ij"), axis=-1).reshape(-1, 2)
    visible = np.repeat(bits, len(chains), axis=0)
    start, legs, log_weights = proposal(model, family, visible, betas, seed, keys)
    run = anneal(
        family,
        legs,
        start,
        chain_generators(seed, Purpose.RAISE, keys),
        precision=precision,
        walk=walk,
        threads=threads,
        progress=progress,
        task="RAISE",
    )
    shape = len(examples), len(chains)
    melted = run.log_weights if len(legs) == 1 else run.passed[:, -1] - run.passed[:, -2]
    return RaiseWeights(
        (log_weights + run.log_weights).reshape(shape),
        (family.log_z_base - melted).reshape(shape),
        np.logical_and.reduce(run.finished.reshape(shape), axis=1),
    )


def proposal(
    model: Model, family: Family, visible: Bits, betas: Floats, seed: int, keys: np.ndarray
) -> tuple[Bits, list[Leg], Floats]:
    """Where the chains start, the legs they walk, and the log weights (chain,) they start with."""
    melt = Leg(betas[::-1].copy())
    if isinstance(model, DBN):
        generators = [generator(seed, Purpose.RECOGNITION, *key) for key in keys.tolist()]
        drawn, log_weights = model.recognise_sample(visible[:, np.newaxis], generators)
        start = drawn[:, 0].astype(np.uint8)
        return start, [melt], log_weights[:, 0] + family.log_f_by_rows(1.0, start) - family.log_z_base
    if isinstance(model, DBM) and len(model.weights) > 1:
        # The posterior of the even hidden layers is intractable: heat it, with v frozen, before melting.
        frozen = np.arange(family.target.n_even) < model.n_visible
        start = np.zeros((len(visible), family.target.n_even), np.uint8)
        start[:, : model.n_visible] = visible
        bias = family.base_even[: model.n_visible]
        return start, [Leg(betas, frozen), melt], sum_rows(visible, bias) - softplus(bias).sum()
    # All even units are visible: heating would change nothing and telescope to f_1(v) / f_0(v).
    return visible, [melt], family.log_f_by_rows(1.0, visible) - family.log_z_base
