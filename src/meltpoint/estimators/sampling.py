"""Samples: of a model by Gibbs chains, and of the annealing model, whose likelihood RAISE bounds."""

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.anneal import Annealed, Leg, anneal
from meltpoint.annealing.base import Base, family_of, uniform
from meltpoint.annealing.family import Family
from meltpoint.annealing.precision import Precision
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.annealing.streams import chain_generators
from meltpoint.errors import Progress
from meltpoint.estimators.checks import check_count
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.dbn import DBN
from meltpoint.randomness import Purpose, generator

_BLOCK_CHAINS = 4096  # of all particles of some samples: memory does not grow with their number


def sample(
    model: Model,
    n: int,
    *,
    steps: Steps = 1000,
    moves: int = 100,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Bits:
    """Visible samples (n, visible unit): n independent chains, annealed from uniform, then `moves` Gibbs moves.

    >>> from meltpoint.models.rbm import RBM
    >>> sample(RBM([[0.0]], [100.0], [0.0]), 3)
    array([[1],
           [1],
           [1]], dtype=uint8)
    """
    moves = check_count(moves, "moves", "100 Gibbs moves after annealing are usual")
    legs = [as_betas(steps), np.ones(moves + 1)]
    return _draw(model, n, uniform(), legs, Purpose.SAMPLE, seed, "float32", threads, progress)


def sample_annealing_model(
    model: Model,
    n: int,
    *,
    particles: int = 1,
    base: Base | None = None,
    steps: Steps = 3000,
    seed: int = 0,
    precision: Precision = "mixed",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Bits:
    """Independent visible samples (n, visible unit) of p_N, the distribution RAISE gives probabilities for.

    `particles` chains are annealed for each sample, one of them is kept in proportion to its AIS weight, and makes
    the last move, at beta 1. One particle is the paper's annealing model p_ann.

    >>> from meltpoint.models.rbm import RBM
    >>> sample_annealing_model(RBM([[0.0]], [100.0], [0.0]), 2, steps=10, particles=3)
    array([[1],
           [1]], dtype=uint8)
    """
    particles = check_count(particles, "particles", "1 is the paper's annealing model")
    betas, last = as_betas(steps), np.ones(2)
    how = (Purpose.ANNEALING_SAMPLE, seed, precision, threads)
    if particles == 1:
        return _draw(model, n, base or uniform(), [betas, last], *how, progress)
    n = check_count(n, "n", "ask for at least one sample")
    family = family_of(model, base or uniform())
    chosen = np.empty((n, family.target.n_even), np.uint8)
    block = max(1, _BLOCK_CHAINS // particles)
    for low in range(0, n, block):
        numbers = np.arange(low, min(low + block, n))
        keys = np.stack(np.meshgrid(numbers, np.arange(particles), indexing="ij"), axis=-1).reshape(-1, 2)
        start = np.zeros((len(keys), family.target.n_even), np.uint8)
        run = _anneal(family, [betas], start, keys, *how, None)
        states = run.state.reshape(len(numbers), particles, -1)
        log_weights = run.log_weights.reshape(len(numbers), particles)
        # The largest of log weight + Gumbel noise is a draw in proportion to the weights.
        noise = np.array([generator(seed, how[0], int(i), particles).gumbel(size=particles) for i in numbers])
        chosen[numbers] = states[np.arange(len(numbers)), np.argmax(log_weights + noise, axis=1)]
        if progress:
            progress("sampling", float(numbers[-1] + 1), float(n))
    keys = np.stack([np.arange(n), np.full(n, particles)], axis=1)
    run = _anneal(family, [last], chosen, keys, *how, None)
    return _visible(model, run.state, seed, how[0])


def _draw(
    model: Model,
    n: int,
    base: Base,
    legs: list[Floats],
    purpose: Purpose,
    seed: int,
    precision: Precision,
    threads: int | None,
    progress: Progress | None,
) -> Bits:
    n = check_count(n, "n", "ask for at least one sample")
    family = family_of(model, base)
    start = np.zeros((n, family.target.n_even), np.uint8)
    run = _anneal(family, legs, start, np.arange(n), purpose, seed, precision, threads, progress)
    return _visible(model, run.state, seed, purpose)


def _anneal(
    family: Family,
    legs: list[Floats],
    start: Bits,
    keys: NDArray[np.integer],
    purpose: Purpose,
    seed: int,
    precision: Precision,
    threads: int | None,
    progress: Progress | None,
) -> Annealed:
    run = anneal(
        family,
        [Leg(betas) for betas in legs],
        start,
        chain_generators(seed, purpose, keys),
        precision=precision,
        threads=threads,
        progress=progress,
        task="sampling",
    )
    if not run.finished.all():
        raise KeyboardInterrupt
    return run


def _visible(model: Model, state: Bits, seed: int, purpose: Purpose) -> Bits:
    if isinstance(model, DBN):
        return model.generate(state, generator(seed, purpose))
    return state[:, : model.n_visible]
