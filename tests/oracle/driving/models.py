"""Small models of the library with random strong parameters, and bases of every kind."""

import numpy as np

from meltpoint.annealing.base import Base, uniform
from meltpoint.models import Model, mrf_of
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from oracle import zoo


def rbm(seed: int, n_visible: int, n_hidden: int, scale: float = 2.5) -> RBM:
    """A random RBM."""
    drawn = zoo.layers(np.random.default_rng([seed, n_visible, n_hidden]), [n_visible, n_hidden], scale)
    return RBM(drawn.weights[0], *drawn.biases)


def dbm(seed: int, sizes: list[int], scale: float = 2.0) -> DBM:
    """A random DBM."""
    drawn = zoo.layers(np.random.default_rng([seed, *sizes]), sizes, scale)
    return DBM(drawn.weights, drawn.biases)


def dbn(seed: int, sizes: list[int], scale: float = 1.5) -> DBN:
    """A random DBN; all but the last two layers are visible sides of directed layers."""
    rng = np.random.default_rng([seed, *sizes])
    drawn = zoo.layers(rng, sizes, scale)
    recognition = [rng.normal(0, 1, size) for size in sizes[1:-1]]
    directed = list(zip(drawn.weights[:-1], drawn.biases[:-2], recognition, strict=True))
    return DBN(directed, RBM(drawn.weights[-1], drawn.biases[-2], drawn.biases[-1]))


BASES = ("uniform", "data", "every layer")


def base(kind: str, model: Model, seed: int = 0) -> Base:
    """A base of a kind: no biases, biases of the visible layer alone, or biases in every layer."""
    if kind == "uniform":
        return uniform()
    rng = np.random.default_rng([seed, 99])
    sizes = mrf_of(model).layer_sizes
    return Base(kind, tuple(rng.normal(0, 1, size) for size in (sizes[:1] if kind == "data" else sizes)))
