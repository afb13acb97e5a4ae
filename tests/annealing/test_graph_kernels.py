"""The kernels for graphs against the reference loop, draw by draw, and against enumerated distributions."""

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import meltpoint as mp
from annealing.graph_fields import bit_field, grid, potts_field
from meltpoint.annealing.base import uniform
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.backends.numba import graph as graph_backend
from meltpoint.backends.numba.graph import GraphBackend
from meltpoint.backends.numba.kernels.bit_graph import state_energy
from meltpoint.backends.reference import ReferenceBackend
from meltpoint.backends.registry import prepare_path
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.randomness import Purpose
from oracle.concentration import FALSE_ALARM, bernstein

N_CHAINS = 45
BETAS = np.linspace(0, 1, 12)
DENSE = ~np.eye(7, dtype=bool)
TOLERATED = {"float64": 1e-11, "float32": 1e-4}


def based(field, seed=0):
    """A path whose base differs from site to site and from state to state."""
    rng = np.random.default_rng(seed)
    return BlockPath(
        field,
        tuple(rng.normal(0, 0.5, (b.size, *b.unit.input_shape)) for b in field.unit_blocks),
    )


def factor_graph(hidden=None):
    rng = np.random.default_rng(5)
    cardinalities = [2, 3, 4, 2, 3, 2]
    scopes = [(0,), (1,), (5,), (0, 1, 2), (2, 3), (3, 4, 5), (1, 4), (0, 5)]
    factors = [(scope, rng.normal(0, 0.8, [cardinalities[i] for i in scope])) for scope in scopes]
    return based(mp.FactorGraph(cardinalities, factors, hidden=hidden).mrf)


BITS = {
    "lattice of spins": based(bit_field(grid(5, 7), "spin", 1)),
    "lattice of bits": based(bit_field(grid(5, 7), "bernoulli", 2)),
    "dense": based(bit_field(DENSE, "spin", 3)),
    "lattice, one colour summed out": based(bit_field(grid(5, 7), "spin", 4, sums_out=True)),
    "dense, one site summed out": based(bit_field(DENSE, "bernoulli", 5, sums_out=True)),
}
TABLES = {
    "Potts lattice": based(potts_field(grid(3, 4), 3, 6)),
    "dense Potts": based(potts_field(DENSE, 4, 7)),
    "Potts lattice, one colour summed out": based(potts_field(grid(3, 4), 3, 8, sums_out=True)),
    "dense Potts, one site summed out": based(potts_field(DENSE, 8, 9, sums_out=True)),
    "factors of order three": factor_graph(),
    "factors, two sites summed out": factor_graph(hidden=[1, 3]),
}
PATHS = BITS | TABLES
every_path = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
some_paths = pytest.mark.parametrize(
    "path",
    [BITS["lattice, one colour summed out"], BITS["dense"], TABLES["Potts lattice, one colour summed out"]],
)


def segments_of(path, betas=BETAS):
    clamped = np.arange(path.target.n_state) % 3 == 0
    return [Segment(betas), Segment(betas, clamped), Segment(betas[::-1].copy(), reversed_sweeps=True)]


def start_of(path, n=N_CHAINS):
    rng = np.random.default_rng(1)
    start = np.zeros((n, path.target.n_state), path.target.dtype)
    for block in path.target.state_blocks:
        start[:, block.columns] = rng.integers(0, block.unit.n_states, (n, block.size))
    return start


def run(path, precision="mixed", segments=None, chains=slice(None), backend=None, **options):
    prepared = (backend or GraphBackend()).prepare(path, precision)
    streams = Streams(7, Purpose.AIS, np.arange(N_CHAINS)[chains])
    return anneal(prepared, segments or segments_of(path), start_of(path)[chains], streams, **options)


def same(found, expected, chains=slice(None)):
    np.testing.assert_array_equal(found.state, expected.state[chains])
    np.testing.assert_array_equal(found.cumulative_log_weights, expected.cumulative_log_weights[chains])


# Against the reference.


@pytest.mark.slow
@pytest.mark.parametrize("precision", TOLERATED)
@every_path
def test_the_kernels_draw_what_the_reference_draws(path, precision) -> None:
    assert prepare_path(path).path is path
    assert GraphBackend().supports(path)
    found = run(path, precision, tile=20)
    expected = run(path, segments=segments_of(path), backend=ReferenceBackend())
    # In float32 a uniform may fall between the two probabilities: with these seeds none does.
    np.testing.assert_array_equal(found.state, expected.state)
    np.testing.assert_allclose(
        found.cumulative_log_weights, expected.cumulative_log_weights, atol=TOLERATED[precision]
    )


@some_paths
def test_sweeps_that_are_not_reversed_are_rejected(path) -> None:
    forward = [replace(segment, reversed_sweeps=False) for segment in segments_of(path)]
    found = run(path, "float64", segments=forward)
    expected = run(path, "float64", backend=ReferenceBackend())
    several = len(path.target.state_blocks) > 1
    assert np.array_equal(found.state, expected.state) == (not several)


@pytest.mark.parametrize("betas", [[0.0, 1.0], [0.0, 0.5, 1.0], [1.0, 1.0, 0.0]])
@pytest.mark.parametrize("scale", [3.0, 60.0])
def test_large_steps_and_inputs_beyond_the_range_of_exp(scale, betas) -> None:
    for field in (
        bit_field(grid(3, 3), "spin", 4, sums_out=True, scale=scale),
        potts_field(grid(3, 3), 3, 4, sums_out=True, scale=scale),
    ):
        path = based(field)
        segments = [Segment(np.array(betas))]
        found, expected = (
            run(path, "float64", segments=segments, backend=backend)
            for backend in (GraphBackend(), ReferenceBackend())
        )
        np.testing.assert_array_equal(found.state, expected.state)
        np.testing.assert_allclose(found.log_weights, expected.log_weights, rtol=1e-11, atol=1e-10)
        coarse = run(path, "mixed", segments=segments)
        agreeing = (coarse.state == expected.state).all(axis=1)
        assert agreeing.mean() > 0.9
        np.testing.assert_allclose(
            coarse.log_weights[agreeing], expected.log_weights[agreeing], rtol=1e-4, atol=0.05
        )


@pytest.mark.slow
def test_many_states_fill_wider_vectors() -> None:
    path = based(potts_field(DENSE, 21, 10))
    found = run(path, "float32")
    expected = run(path, backend=ReferenceBackend())
    np.testing.assert_array_equal(found.state, expected.state)
    np.testing.assert_allclose(found.log_weights, expected.log_weights, atol=1e-4)


# Against enumeration.


def distribution(path, beta):
    """All states of the path's target, and their probabilities at beta."""
    numbers = np.zeros(path.target.n_state, int)
    for block in path.target.state_blocks:
        numbers[block.columns] = block.unit.n_states
    states = np.array(list(itertools.product(*map(range, numbers))), path.target.dtype)
    f = np.exp(path.log_f(beta, states))
    return states, f / f.sum()


def frequencies(path, ran, beta, precision, n, reversed_sweeps):
    """How often each state occurs after two sweeps of `ran`, from exact draws of `path`."""
    states, p = distribution(path, beta)
    start = states[np.random.default_rng(3).choice(len(states), n, p=p)]
    segment = Segment(np.full(3, beta), reversed_sweeps=reversed_sweeps)
    streams = Streams(11, Purpose.SAMPLE, np.arange(n))
    found = anneal(GraphBackend().prepare(ran, precision), [segment], start, streams)
    places = {state.tobytes(): k for k, state in enumerate(states)}
    counts = np.bincount([places[state.tobytes()] for state in found.state], minlength=len(states))
    return counts / n, p


def far(found, p, n):
    """Whether some frequency is farther from its probability than happens once in a million."""
    allowed = [bernstein(n, q * (1 - q), 1.0, FALSE_ALARM / len(p)) for q in p]
    return (np.abs(found - p) > allowed).any()


TINY = {
    "bits": lambda scale: based(bit_field(DENSE[:4, :4], "spin", 1, scale=scale)),
    "bits, summed out": lambda scale: based(bit_field(grid(2, 3), "spin", 1, sums_out=True, scale=scale)),
    "Potts": lambda scale: based(potts_field(DENSE[:3, :3], 3, 1, scale=scale)),
    "Potts, summed out": lambda scale: based(potts_field(grid(1, 4), 3, 1, sums_out=True, scale=scale)),
}


@pytest.mark.parametrize("reversed_sweeps", [False, True])
@pytest.mark.parametrize("precision", ["mixed", "float32"])
@pytest.mark.parametrize("kind", TINY)
def test_a_sweep_keeps_its_distribution(kind, precision, reversed_sweeps) -> None:
    """Bernstein's inequality: a false alarm once in a million for each. The mutant's couplings are 1.3 x as large."""
    n = 20_000
    path = TINY[kind](0.8)
    assert not far(*frequencies(path, path, 0.7, precision, n, reversed_sweeps), n)
    if precision == "mixed" and not reversed_sweeps:
        assert far(*frequencies(path, TINY[kind](1.04), 0.7, precision, n, reversed_sweeps), n)


# Tiles, threads, calls.


@pytest.mark.parametrize("precision", ["mixed", "float64"])
@some_paths
def test_tiles_and_the_order_of_chains_do_not_matter(path, precision) -> None:
    whole = run(path, precision)
    for tile in (1, 7, 1000):
        same(run(path, precision, tile=tile), whole)
    order = np.random.default_rng(1).permutation(N_CHAINS)
    same(run(path, precision, chains=order), whole, order)
    same(run(path, precision, chains=slice(11, 30)), whole, slice(11, 30))


@some_paths
def test_the_length_of_kernel_calls_does_not_matter(path, monkeypatch) -> None:
    # Log weights are added up in the same order; the weight of what is summed out is cut elsewhere.
    whole = run(path)
    monkeypatch.setattr(graph_backend, "_CALL_WORK", 1)
    cut = run(path)
    np.testing.assert_array_equal(cut.state, whole.state)
    np.testing.assert_allclose(cut.log_weights, whole.log_weights, atol=1e-9)


# Weights.


@pytest.mark.parametrize("precision", ["mixed", "float32", "float64"])
@every_path
def test_all_sites_clamped_leaves_a_telescoping_product(path, precision) -> None:
    everything = np.ones(path.target.n_state, bool)
    found = run(path, precision, segments=[Segment(BETAS, everything)])
    start = start_of(path)
    np.testing.assert_array_equal(found.state, start)
    # Whatever was rounded on the way, the exact ends remain; but for float32 in what is summed out.
    exact = precision == "float64" or path.target.summed_out is None
    expected = path.log_f(1.0, start) - path.log_f(0.0, start)
    np.testing.assert_allclose(found.log_weights, expected, atol=1e-10 if exact else 1e-4)


def test_moves_at_one_beta_weigh_no_more_than_rounding() -> None:
    for path in PATHS.values():
        found = run(path, "float64", segments=[Segment(np.ones(9))])
        np.testing.assert_allclose(found.log_weights, 0, atol=1e-11)


def test_log_f_does_not_drift() -> None:
    prepared = GraphBackend().prepare(BITS["lattice of spins"], "float32")
    streams = Streams(1, Purpose.AIS, np.arange(N_CHAINS))
    chains = prepared.chains(prepared, start_of(BITS["lattice of spins"]), streams.generators())
    chains.enter(prepared.fine)
    begun = chains.energy.copy()
    chains.run(prepared.fine, Segment(np.ones(1)), np.tile([0.2, 0.9], 2000))
    assert (chains.energy != begun).any()
    np.testing.assert_array_equal(chains.energy, state_energy(prepared.fine, chains.sites))


def test_a_large_lattice_needs_memory_for_its_sites_only() -> None:
    """40,000 sites: a dense matrix would take 12.8 GB; hundreds of bytes a site and a few a chain are needed."""
    side, n = 200, 32
    numbers = np.arange(side * side).reshape(side, side)
    pairs = [(numbers, np.roll(numbers, 1, axis)) for axis in (0, 1)]
    rows, columns = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    upper = sparse.coo_array((np.full(rows.size, 0.4), (rows, columns)), shape=(side**2, side**2))
    path = mp.Ising((upper + upper.T).tocsr(), np.zeros(side**2)).path(uniform())
    prepared = prepare_path(path)
    prepared.compile()
    start = np.zeros((n, path.target.n_state), np.uint8)
    tracemalloc.start()
    prepared = prepare_path(path)
    anneal(prepared, [Segment(np.linspace(0, 1, 4))], start, Streams(1, Purpose.AIS, np.arange(n)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < side**2 * (1000 + 4 * n)
