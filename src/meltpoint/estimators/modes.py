"""Where a model may have modes: fixed points of its mean-field equations, from many starting points.

Each fixed point is a distribution of independent units with a lower bound on log Z of its own,

    log Z >= E[log f] + entropy     (deterministic: no chains, no chance),

and is at once a base to anneal from. They are sought from the conditional distributions given each single unit of the
summed-out side, from the corners of the other side, and from random corners.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from meltpoint.annealing.base import Base
from meltpoint.models import Model, mrf_of
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.checks import Floats
from meltpoint.randomness import Purpose, generator

_SWEEPS = 60
_CORNERS = 64
_SINGLE = 256  # units of the summed-out side that are tried at most
_LEAST_RATE = 0.01
_KEY = (1003, 0, 0, 0)  # four numbers: the pilot's own keys have three
_SAME = 0.05  # mean distance of rates up to which two fixed points are one mode


@dataclass(frozen=True, eq=False)
class Modes:
    """Mean-field fixed points, best bound first: even rates (mode, unit), odd rates (mode, unit), bounds (mode,)."""

    even: Floats
    odd: Floats
    bounds: Floats


def find_modes(model: Model, *, count: int, seed: int = 0) -> Modes:
    """Up to `count` different fixed points with the largest lower bounds on log Z.

    >>> from meltpoint.models.rbm import RBM
    >>> find_modes(RBM([[9.0], [9.0]], [-4.0, -4.0], [-9.0]), count=4).even.round(1)
    array([[1., 1.],
           [0., 0.]])
    """
    two = mrf_of(model).bipartite
    even = _settle(two, _starting_points(two, seed))
    odd = two.odd_given_even(even)
    bounds = _bounds(two, even, odd)
    kept: list[int] = []
    for k in np.argsort(-bounds):
        distances = np.abs(even[kept] - even[k]).mean(axis=1)
        if len(kept) == count:
            break
        if not (distances < _SAME).any():
            kept.append(int(k))
    return Modes(even[kept], odd[kept], bounds[kept])


def mode_bases(model: Model, modes: Modes) -> list[Base]:
    """A base of independent units in every layer for each mode, its rates kept off 0 and 1."""
    two = mrf_of(model).bipartite
    bases = []
    for number, (even, odd) in enumerate(zip(modes.even, modes.odd, strict=True)):
        sides = [
            [logit(np.clip(rates[part], _LEAST_RATE, 1 - _LEAST_RATE)) for part in slices]
            for rates, slices in ((even, two.even_slices), (odd, two.odd_slices))
        ]
        layers = [None] * (len(sides[0]) + len(sides[1]))
        layers[0::2], layers[1::2] = sides
        bases.append(Base(f"mode {number + 1}", tuple(layers)))
    return bases


def mode_shares(modes: Modes, states: np.ndarray, mode: int) -> Floats:
    """1 (state,) where a mode is the most probable origin of a state (state, even unit), else 0: they add up to one."""
    rates = np.clip(modes.even, _LEAST_RATE, 1 - _LEAST_RATE)
    log_prob = states @ logit(rates).T + np.log1p(-rates).sum(axis=1)
    return (np.argmax(log_prob, axis=1) == mode).astype(np.float64)


def _starting_points(two: Bipartite, seed: int) -> Floats:
    """Even rates (point, unit)."""
    rng = generator(seed, Purpose.PILOT, *_KEY)
    units = rng.permutation(two.n_odd)[:_SINGLE]
    single = np.zeros((len(units), two.n_odd))
    single[np.arange(len(units)), units] = 1.0
    only = two.even_given_odd(single)
    typical = two.odd_given_even(np.tile(expit(two.even_bias), (len(units), 1)))
    switched = two.even_given_odd(np.maximum(typical, single))
    corners = (rng.random((_CORNERS, two.n_even)) < rng.random((_CORNERS, 1))).astype(np.float64)
    ends = np.stack([np.zeros(two.n_even), np.ones(two.n_even), expit(two.even_bias)])
    return np.concatenate([only, switched, corners, ends])


def _settle(two: Bipartite, even: Floats) -> Floats:
    """Even rates (point, unit) after sweeps over both sides: the bound rises with each."""
    for _ in range(_SWEEPS):
        even = two.even_given_odd(two.odd_given_even(even))
    return even


def _bounds(two: Bipartite, even: Floats, odd: Floats) -> Floats:
    energy = even @ two.even_bias + odd @ two.odd_bias + (two.odd_field(even) * odd).sum(axis=1)
    return energy + _entropy(even) + _entropy(odd)


def _entropy(rates: Floats) -> Floats:
    p, q = np.clip(rates, 1e-300, 1.0), np.clip(1 - rates, 1e-300, 1.0)
    return -(rates * np.log(p) + (1 - rates) * np.log(q)).sum(axis=1)
