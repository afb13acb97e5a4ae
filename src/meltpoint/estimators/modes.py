"""Candidate modes of a two-sided model: fixed points of its mean-field equations, from many starting points.

Each fixed point is a distribution of independent units with a lower bound on log Z of its own,

    log Z >= E[log f] + entropy     (deterministic: no chains, no randomness),

and can serve as a base to anneal from. They are sought from the conditional distributions given single units of the
summed-out side, given some of them, from the two ends and from random corners of the other side.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.kernels.ordered import ordered_product
from meltpoint.kernels.sigmoid import sigmoid
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.elementary import log1p, logit

_SWEEPS = 30
_WORK = 3_000_000_000  # unit pairs times sweeps, for all starting points: half a second
_LEAST_POINTS = 64
_MOST_POINTS = 400
_LEAST_RATE = 0.01
_KEY = 4, 0  # what else the evidence draws has other first numbers
_SAME = 0.05  # mean distance of rates up to which two fixed points are one mode


@dataclass(frozen=True, eq=False)
class Modes:
    """Mean-field fixed points, best bound first: even rates (mode, unit), odd rates (mode, unit), bounds (mode,)."""

    even: Floats
    odd: Floats
    bounds: Floats


def find_modes(model: Model, *, count: int, seed: int = 0) -> Modes | None:
    """Up to `count` different fixed points with the largest lower bounds on log Z; None without two sides.

    >>> from meltpoint.models.rbm import RBM
    >>> find_modes(RBM([[9.0], [9.0]], [-4.0, -4.0], [-9.0]), count=4).even.round(1)
    array([[1., 1.],
           [0., 0.]])
    """
    two = model.bipartite
    if two is None:
        return None
    even = _settle(two, _starting_points(two, seed))
    odd = two.odd_given_even(even)
    bounds = two.mean_field_bound(even, odd)
    kept: list[int] = []
    # Stable: which of equals comes first depends on the processor otherwise.
    for k in np.argsort(-bounds, kind="stable"):
        distances = np.abs(even[kept] - even[k]).mean(axis=1)
        if len(kept) == count:
            break
        if not (distances < _SAME).any():
            kept.append(int(k))
    return Modes(even[kept], odd[kept], bounds[kept])


def mode_bases(model: Model, modes: Modes) -> list[Base]:
    """A base of independent units in every layer for each mode, its rates kept off 0 and 1."""
    two = model.bipartite
    assert two is not None, "find_modes has found modes"
    units = model.undirected.units
    bases = []
    for number, (even, odd) in enumerate(zip(modes.even, modes.odd, strict=True)):
        sides = [
            [logit(np.clip(rates[part], _LEAST_RATE, 1 - _LEAST_RATE)) for part in slices]
            for rates, slices in ((even, two.even_slices), (odd, two.odd_slices))
        ]
        # Rates are those of bits; biases are in the terms of the units.
        layers = [sides[k % 2][k // 2] / unit.scale for k, unit in enumerate(units)]
        bases.append(Base(f"mode {number + 1}", tuple(layers)))
    return bases


def nearest_mode(modes: Modes, states: Bits) -> NDArray[np.integer]:
    """The mode (state,) under which each state (state, even unit) is most probable: modes share the space."""
    rates = np.clip(modes.even, _LEAST_RATE, 1 - _LEAST_RATE)
    log_prob = ordered_product(states, logit(rates).T) + log1p(-rates).sum(axis=1)
    return np.argmax(log_prob, axis=1)


def _starting_points(two: Bipartite, seed: int) -> Floats:
    """Even rates (point, unit): half from single odd units, a quarter from few of them, a quarter from corners."""
    rng = generator(seed, Purpose.EVIDENCE, *_KEY)
    points = int(np.clip(_WORK // (_SWEEPS * two.n_even * two.n_odd), _LEAST_POINTS, _MOST_POINTS))
    units = rng.permutation(two.n_odd)[: points // 4]
    single = np.zeros((len(units), two.n_odd))
    single[np.arange(len(units)), units] = 1.0
    typical = two.odd_given_even(sigmoid(two.even_bias)[np.newaxis])
    few = rng.random((points // 4, two.n_odd)) < rng.random((points // 4, 1)) ** 2
    corners = (rng.random((points // 4, two.n_even)) < rng.random((points // 4, 1))).astype(np.float64)
    ends = np.stack([np.zeros(two.n_even), np.ones(two.n_even), sigmoid(two.even_bias)])
    odd = np.concatenate([single, np.maximum(typical, single), few])
    return np.concatenate([two.even_given_odd(odd), corners, ends])


def _settle(two: Bipartite, even: Floats) -> Floats:
    """Even rates (point, unit) after sweeps over both sides: the bound rises with each."""
    for _ in range(_SWEEPS):
        even = two.even_given_odd(two.odd_given_even(even))
    return even
