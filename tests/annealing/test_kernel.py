"""The fused kernels do what the reference loop does with the same uniforms, whatever the sizes."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meltpoint.annealing.base import Base, uniform
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.numba.bipartite import BipartiteBackend
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.models.dbm import DBM
from meltpoint.models.rbm import RBM
from meltpoint.randomness import Purpose
from oracle.driving.replay import clear_cut, replay
from oracle.zoo import layers

ALLOWED = {"float64": (1e-12, 1e-10), "float32": (2e-7, 1e-4), "mixed": (2e-7, 1e-4)}
"""By how much log weights may differ: relatively, plus so many nats."""

sizes = st.lists(st.integers(1, 70), min_size=2, max_size=4)
schedules = st.one_of(
    st.just([0.0, 1.0]),
    st.lists(st.floats(0, 1), min_size=1, max_size=6).map(lambda betas: [0.0, *sorted(betas), 1.0]),
    st.integers(20, 60).map(lambda n: np.linspace(0, 1, n).tolist()),
)


def make_path(sizes, scale, seed, based):
    rng = np.random.default_rng(seed)
    drawn = layers(rng, list(sizes), scale)
    base = Base("test", tuple(rng.normal(0, 1, size) for size in sizes)) if based else uniform()
    return DBM(drawn.weights, drawn.biases).path(base)


def compare(path, segments, precision, seed, n_chains=4, slack=1.0) -> int:
    """Assert that kernel and reference loop agree; gives the number of chains that could be compared."""
    start = np.random.default_rng(seed).integers(0, 2, (n_chains, path.target.n_state), np.uint8)
    streams = Streams(seed, Purpose.AIS, np.arange(n_chains))
    prepared = BipartiteBackend().prepare(path, precision)
    found = anneal(prepared, segments, start, streams)
    expected = replay(prepared, segments, start, streams)
    sure = (
        np.ones(n_chains, bool) if precision == "float64" else clear_cut(prepared, segments, start, streams)
    )
    np.testing.assert_array_equal(found.state[sure], expected.state[sure])
    rtol, atol = ALLOWED[precision]
    np.testing.assert_allclose(
        found.log_weights[sure], expected.log_weights[sure], rtol=rtol, atol=slack * atol
    )
    return int(sure.sum())


@pytest.mark.parametrize("precision", ALLOWED)
@given(
    sizes=sizes,
    scale=st.sampled_from([0.05, 0.5, 2.0]),
    betas=schedules,
    descending=st.booleans(),
    clamp=st.booleans(),
    based=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@example(sizes=[1, 1], scale=2.0, betas=[0.0, 0.5, 1.0], descending=False, clamp=False, based=True, seed=1)
@example(sizes=[32, 64], scale=0.5, betas=[0.0, 0.5, 1.0], descending=True, clamp=True, based=True, seed=2)
@example(
    sizes=[33, 31, 1, 65], scale=2.0, betas=[0.0, 1.0], descending=False, clamp=True, based=False, seed=3
)
@settings(max_examples=min(25, settings().max_examples), deadline=None)
def test_kernel_agrees_with_the_reference_loop(
    precision, sizes, scale, betas, descending, clamp, based, seed
) -> None:
    path = make_path(sizes, scale, seed, based)
    clamped = np.random.default_rng(seed).random(path.target.n_state) < 0.5 if clamp else None
    compare(path, [Segment(np.array(betas[::-1] if descending else betas), clamped)], precision, seed)


@pytest.mark.parametrize("precision", ALLOWED)
def test_most_chains_can_be_compared(precision) -> None:
    # Chains that rounding could lead astray are left out above: this makes sure that few are.
    path = make_path([40, 30, 20], 0.5, 1, based=True)
    assert compare(path, [Segment(np.linspace(0, 1, 20))], precision, seed=2, n_chains=40) > 20


@pytest.mark.parametrize("precision", ALLOWED)
def test_heating_then_melting(precision) -> None:
    path = make_path([9, 40, 35], 0.5, 3, based=True)
    clamped = np.arange(path.target.n_state) < 9
    betas = np.linspace(0, 1, 12)
    assert compare(path, [Segment(betas, clamped), Segment(betas[::-1])], precision, seed=4, n_chains=40) > 20


@pytest.mark.parametrize("precision", ALLOWED)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("n", "m"), [(100, 90), (64, 64), (150, 20)], ids=["many", "few", "wide"])
def test_equal_weights_do_not_overflow_sixteen_bits(precision, sign, n, m) -> None:
    # Every row is as large as a row can be, and all units of a side are on or off together. The odd side's share
    # of the log weight is 4,500 nats, nearly all of which the even side's takes back: float32 leaves 1e-7 of it.
    rbm = RBM(np.full((n, m), sign), np.full(n, -m / 2 * sign), np.full(m, -n / 2 * sign))
    compare(rbm.path(uniform()), [Segment(np.linspace(0, 1, 120))], precision, 5, n_chains=20, slack=10)


@pytest.mark.parametrize("precision", ALLOWED)
def test_one_outlying_weight(precision) -> None:
    weights = np.random.default_rng(0).normal(0, 0.1, (60, 50))
    weights[7, 11] = 25.0
    path = RBM(weights, np.zeros(60), np.zeros(50)).path(uniform())
    assert compare(path, [Segment(np.linspace(0, 1, 15))], precision, seed=6, n_chains=40) > 10


@pytest.mark.parametrize("precision", ALLOWED)
def test_inputs_beyond_the_range_of_exp(precision) -> None:
    rbm = RBM(np.full((5, 3), 400.0), np.full(5, -300.0), np.full(3, 300.0))
    compare(
        rbm.path(uniform()),
        [Segment(np.linspace(0, 1, 9)), Segment(np.ones(4))],
        precision,
        seed=7,
    )
    compare(rbm.path(uniform()), [Segment(np.linspace(1, 0, 9))], precision, seed=8)


@pytest.mark.parametrize("precision", ALLOWED)
def test_what_the_caller_passes_is_left_alone(precision) -> None:
    path = make_path([5, 4], 1.0, 9, based=False)
    start, streams = np.zeros((3, 5), np.uint8), Streams(1, Purpose.AIS, np.arange(3))
    prepared = BipartiteBackend().prepare(path, precision)
    run = anneal(prepared, [Segment(np.linspace(0, 1, 9))], start, streams)
    assert run.state.any()
    assert not start.any()
