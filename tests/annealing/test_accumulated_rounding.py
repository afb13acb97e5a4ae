"""Float32 steps are added up in float64: very many small steps do not wear the log weight away."""

import numpy as np
import pytest

from meltpoint.annealing.base import uniform
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.numba.bipartite import BipartiteBackend
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.models.rbm import RBM
from meltpoint.randomness import Purpose

PART = 250


def rounding_errors(path, precision, betas):
    """Log weights of one chain in float64, part by part, and what the kernel's differ by.

    Each part starts where the last one ended, and is run twice with the same uniforms. In the few parts in
    which rounding turns a draw over, the two differ, and nothing can be compared: they are left out.
    """
    state = np.zeros((1, path.target.n_state), np.uint8)
    prepared = BipartiteBackend().prepare(path, precision)
    between = prepared.rounded or path
    in_double = BipartiteBackend().prepare(between, "float64")
    weights, errors = [], []
    for low in range(0, betas.size - 1, PART):
        segments = [Segment(betas[low : low + PART + 1])]
        first, last = segments[0].betas[[0, -1]]
        streams = Streams(1, Purpose.AIS, np.array([low]))
        found = anneal(prepared, segments, state, streams)
        exact = anneal(in_double, segments, state, streams)
        weight = exact.log_weights + between.log_f(first, state) - path.log_f(first, state)
        weight += path.log_f(last, exact.state) - between.log_f(last, exact.state)
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
    weights, errors = rounding_errors(rbm.path(uniform()), precision, np.linspace(0, 1, steps + 1))
    assert len(errors) > 0.9 * steps / PART
    assert abs(weights.sum()) > 10  # there is something to lose
    assert abs(errors.sum()) < 1e-3
