"""Small models of the library with random strong parameters, and bases of every kind."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from meltpoint.annealing.base import Base, uniform
from meltpoint.models import Model
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from oracle import zoo

Units: TypeAlias = str | Sequence[str]


def rbm(
    seed: int, n_visible: int, n_hidden: int, scale: float = 2.5, units: tuple[str, str] = ("bernoulli",) * 2
) -> RBM:
    """A random RBM."""
    drawn = zoo.layers(np.random.default_rng([seed, n_visible, n_hidden]), [n_visible, n_hidden], scale)
    return RBM(drawn.weights[0], *drawn.biases, visible=units[0], hidden=units[1])


def dbm(seed: int, sizes: list[int], scale: float = 2.0, units: Units = "bernoulli") -> DBM:
    """A random DBM."""
    drawn = zoo.layers(np.random.default_rng([seed, *sizes]), sizes, scale)
    return DBM(drawn.weights, drawn.biases, units=units)


def dbn(seed: int, sizes: list[int], scale: float = 1.5, units: Sequence[str] = ()) -> DBN:
    """A random DBN; all but the last two layers are visible sides of directed layers."""
    rng = np.random.default_rng([seed, *sizes])
    drawn = zoo.layers(rng, sizes, scale)
    recognition = [rng.normal(0, 1, size) for size in sizes[1:-1]]
    directed = list(zip(drawn.weights[:-1], drawn.biases[:-2], recognition, strict=True))
    *lower, visible, hidden = units or ["bernoulli"] * len(sizes)
    top = RBM(drawn.weights[-1], drawn.biases[-2], drawn.biases[-1], visible=visible, hidden=hidden)
    return DBN(directed, top, units=lower)


BASES = ("uniform", "data", "every layer")


def base(kind: str, model: Model, seed: int = 0) -> Base:
    """A base of a kind: no biases, biases of the visible layer alone, or biases in every layer."""
    if kind == "uniform":
        return uniform()
    rng = np.random.default_rng([seed, 99])
    sizes = model.undirected.layer_sizes
    return Base(kind, tuple(rng.normal(0, 1, size) for size in (sizes[:1] if kind == "data" else sizes)))
