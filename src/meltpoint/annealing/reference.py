"""The annealing loop in plain NumPy: to read, and to test the kernels against.

    repeat for i = 0 … K-1:
        move state at s_i                              # o ~ p(odd | e), then e ~ p(even | o)
        log_w += log f_{s_i+1}(state) - log f_{s_i}(state)

The move is reversible with respect to p_{s_i}(e), so the same loop anneals (betas 0 → 1) and melts (1 → 0).
"""

import itertools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from meltpoint.annealing.family import Family
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.checks import Bits, Floats

Draw: TypeAlias = Callable[[int], NDArray[np.floating]]
"""Gives the next uniforms (chain, count) of every chain's stream."""


def anneal_reference(
    family: Family, betas: Floats, state: Bits, draw: Draw, frozen: NDArray[np.bool_] | None = None
) -> tuple[Bits, Floats]:
    """Final even states (chain, unit) and log weights (chain,) of one run through betas, in float64."""
    log_weights = np.zeros(len(state))
    for beta, following in itertools.pairwise(betas):
        state = move(family, beta, state, draw, frozen)
        log_weights += family.log_f(following, state) - family.log_f(beta, state)
    return state, log_weights


def move(
    family: Family, beta: float, state: Bits, draw: Draw, frozen: NDArray[np.bool_] | None = None
) -> Bits:
    """One reversible move at beta: the odd side given the even side, then the even side given the odd."""
    target: Bipartite = family.target
    on = expit(beta * target.odd_field(state) + family.odd_bias(beta))
    odd = _draw_layers(target.odd_slices, draw) <= on
    on = expit(beta * target.even_field(odd) + family.even_bias(beta))
    even = (_draw_layers(target.even_slices, draw) <= on).astype(np.uint8)
    return even if frozen is None else np.where(frozen, state, even)


def _draw_layers(layers: tuple[slice, ...], draw: Draw) -> NDArray[np.floating]:
    return np.concatenate([draw(layer.stop - layer.start) for layer in layers], axis=1)
