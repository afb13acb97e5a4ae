"""Float32 steps are added up in float64: very many small steps do not wear the log weight away."""

import numpy as np
import pytest

from meltpoint.annealing.anneal import Leg, anneal
from meltpoint.annealing.base import family_of, uniform
from meltpoint.annealing.precision import prepare
from meltpoint.annealing.streams import chain_generators
from meltpoint.models.rbm import RBM
from meltpoint.randomness import Purpose

SEGMENT = 250


def rounding_errors(family, precision, betas):
    """Log weights of one chain in float64, segment by segment, and what the kernel's differ by.

    Each segment starts where the last one ended, and is walked twice with the same uniforms. In the few segments in
    which rounding turns a draw over, the two part, and nothing can be compared: they are left out.
    """
    state = np.zeros((1, family.target.n_even), np.uint8)
    walk = prepare(family, precision)
    weights, errors = [], []
    for low in range(0, betas.size - 1, SEGMENT):
        legs = [Leg(betas[low : low + SEGMENT + 1])]
        first, last = legs[0].betas[[0, -1]]
        generators = chain_generators(1, Purpose.AIS, np.array([low]))
        found = anneal(family, legs, state, generators, precision=precision, threads=1)
        between = walk.rounded or family
        exact = anneal(between, legs, state, generators, precision="float64", threads=1)
        weight = exact.log_weights + between.log_f(first, state) - family.log_f(first, state)
        weight += family.log_f(last, exact.state) - between.log_f(last, exact.state)
        if (found.state == exact.state).all() and abs(found.log_weights - weight) < 0.01:
            weights.append(weight[0])
            errors.append(found.log_weights[0] - weight[0])
        state = found.state
    return np.array(weights), np.array(errors)


@pytest.mark.parametrize("precision", ["mixed", "float32"])
@pytest.mark.parametrize("steps", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_log_weight_keeps_its_digits(precision, steps) -> None:
    rng = np.random.default_rng(0)
    rbm = RBM(rng.normal(0, 0.5, (40, 33)), rng.normal(2, 1, 40), rng.normal(-3, 1, 33))
    weights, errors = rounding_errors(family_of(rbm, uniform()), precision, np.linspace(0, 1, steps + 1))
    assert len(errors) > 0.9 * steps / SEGMENT
    assert abs(weights.sum()) > 10  # there is something to lose
    assert abs(errors.sum()) < 1e-3
