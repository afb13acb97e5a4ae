"""What the kernels should have done, by the plain NumPy loop fed with the kernels' own uniforms."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.anneal import Annealed, Leg
from meltpoint.annealing.precision import Walk
from meltpoint.annealing.reference import anneal_reference
from meltpoint.annealing.streams import next_uniforms
from meltpoint.models.checks import Bits

NUDGE = 3e-5
"""Relative change of a uniform that float32 arithmetic could be mistaken about."""


def replay(
    walk: Walk, legs: Sequence[Leg], state: Bits, generators: NDArray[np.uint32], nudge: float = 0.0
) -> Annealed:
    """The walk's legs from `state`, stretch by stretch, in float64; `generators` are left as they were."""
    generators = generators.copy()
    real = walk.exact_packed.real.type

    def draw(count: int) -> NDArray[np.floating]:
        return next_uniforms(generators, count, real) * (1 + nudge)

    log_weights = np.zeros(len(state))
    family = walk.exact
    beta = legs[0].betas[0]
    for leg in legs:
        for stretch in walk.stretches(leg.betas):
            following = walk.exact if stretch.exact or walk.rounded is None else walk.rounded
            log_weights += following.log_f(stretch.betas[0], state) - family.log_f(stretch.betas[0], state)
            family = following
            state, change = anneal_reference(family, stretch.betas, state, draw, leg.frozen)
            log_weights += change
            beta = stretch.betas[-1]
    log_weights += walk.exact.log_f(beta, state) - family.log_f(beta, state)
    return Annealed(state, log_weights[:, np.newaxis], np.ones(len(state), np.bool_))


def clear_cut(
    walk: Walk, legs: Sequence[Leg], state: Bits, generators: NDArray[np.uint32]
) -> NDArray[np.bool_]:
    """Which chains (chain,) never draw a unit so close to its probability that rounding could decide.

    They are those that walk the same way when all their uniforms are a little larger, and a little smaller.
    """
    runs = [replay(walk, legs, state, generators, nudge) for nudge in (-NUDGE, 0.0, NUDGE)]
    return np.all([run.log_weights == runs[0].log_weights for run in runs], axis=0)
