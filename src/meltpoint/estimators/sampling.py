"""Samples: of a model by Gibbs chains, and of the annealing model, whose likelihood RAISE bounds."""

import numpy as np

from meltpoint.annealing.anneal import Leg, anneal
from meltpoint.annealing.base import Base, family_of, uniform
from meltpoint.annealing.precision import Precision
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.annealing.streams import chain_generators
from meltpoint.errors import Progress
from meltpoint.estimators.checks import check_count
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.dbn import DBN
from meltpoint.randomness import Purpose, generator


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
    base: Base | None = None,
    steps: Steps = 3000,
    seed: int = 0,
    precision: Precision = "mixed",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Bits:
    """Independent visible samples (n, visible unit) of p_ann, the distribution RAISE gives probabilities for.

    The base is drawn and one move is made at every beta, the last one at beta 1.

    >>> from meltpoint.models.rbm import RBM
    >>> sample_annealing_model(RBM([[0.0]], [100.0], [0.0]), 2, steps=10)
    array([[1],
           [1]], dtype=uint8)
    """
    legs = [as_betas(steps), np.ones(2)]
    return _draw(
        model, n, base or uniform(), legs, Purpose.ANNEALING_SAMPLE, seed, precision, threads, progress
    )


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
    run = anneal(
        family,
        [Leg(betas) for betas in legs],
        np.zeros((n, family.target.n_even), np.uint8),
        chain_generators(seed, purpose, np.arange(n)),
        precision=precision,
        threads=threads,
        progress=progress,
        task="sampling",
    )
    if not run.finished.all():
        raise KeyboardInterrupt
    if isinstance(model, DBN):
        return model.generate(run.state, generator(seed, purpose))
    return run.state[:, : model.n_visible]
