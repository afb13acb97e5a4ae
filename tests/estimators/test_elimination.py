"""Elimination equals enumeration, closed forms and published values; its samples have the model's distribution."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chi2

import meltpoint as mp
from meltpoint.errors import InputError
from meltpoint.estimators import elimination
from meltpoint.estimators.elimination import eliminate, order_for
from meltpoint.estimators.elimination_order import find_order, interaction_graph, least_width, measure_order
from meltpoint.models.factors import condition
from oracle import lattices

seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([0.0, 1.0, 10.0, 500.0])


def close(value: float, tolerance: float = 1e-12) -> object:
    return pytest.approx(value, rel=tolerance, abs=tolerance)


@given(n=st.integers(1, 7), m=st.integers(0, 12), order=st.integers(1, 4), scale=scales, seed=seeds)
def test_equals_enumeration(n, m, order, scale, seed) -> None:
    factors = lattices.random_factors(np.random.default_rng(seed), n, m, order, scale)
    _, log_f = lattices.log_f_of_all(*factors)
    assert eliminate(factors).log_z == close(float(logsumexp(log_f)))


@given(n=st.integers(2, 6), m=st.integers(1, 10), seed=seeds, data=st.data())
def test_conditioning_equals_enumeration_of_what_agrees(n, m, seed, data) -> None:
    factors = lattices.random_factors(np.random.default_rng(seed), n, m, 3, 2.0)
    units = data.draw(st.sets(st.integers(0, n - 1)))
    clamped = {unit: data.draw(st.integers(0, factors[0][unit] - 1)) for unit in units}
    states, log_f = lattices.log_f_of_all(*factors)
    agree = np.all([states[:, unit] == state for unit, state in clamped.items()] or [True], axis=0)
    expected = float(logsumexp(log_f[agree | np.zeros(len(log_f), bool)]))
    assert eliminate(condition(factors, clamped)).log_z == close(expected)


def test_impossible_states_have_no_weight() -> None:
    with np.errstate(divide="ignore"):
        unequal = np.log(1 - np.eye(3))
    pairs = [((0, 1), unequal), ((1, 2), unequal), ((0, 2), unequal)]
    assert eliminate(((3, 3, 3), pairs, 0.0)).log_z == close(math.log(6))
    assert eliminate(((2, 2, 2), [(pair, unequal[:2, :2]) for pair, _ in pairs], 0.0)).log_z == -math.inf


def test_nan_is_refused() -> None:
    with pytest.raises(InputError, match="NaN"):
        eliminate(((2,), [((0,), np.array([np.nan, 0.0]))], 0.0))


@pytest.mark.parametrize(("n", "m", "k"), [(3, 3, 0.44), (4, 6, 0.2), (8, 8, 0.44), (3, 30, 1.5)])
def test_torus_by_kaufman(n, m, k) -> None:
    assert eliminate(lattices.lattice(n, m, k, periodic=True)).log_z == close(
        lattices.kaufman(n, m, k), 1e-11
    )


def test_kaufman_gives_the_published_value() -> None:
    assert lattices.kaufman(16, 16, 0.44) == pytest.approx(238.387247, abs=1e-6)


def test_free_boundary() -> None:
    factors = lattices.lattice(12, 12, 0.44, periodic=False)
    assert eliminate(factors).log_z == close(129.78298803584826)


def test_chain_by_transfer_matrix() -> None:
    rng = np.random.default_rng(1)
    couplings, fields = rng.standard_normal(999), rng.standard_normal(1000)
    tables = [((i, i + 1), lattices.spin_pair(k)) for i, k in enumerate(couplings)]
    tables += [((i,), h * np.array([-1.0, 1.0])) for i, h in enumerate(fields)]
    assert eliminate(((2,) * 1000, tables, 0.0)).log_z == close(lattices.chain(couplings, fields))


def test_curie_weiss_by_its_sum() -> None:
    n, k, h = 12, 0.2, 0.1
    tables = [((i, j), lattices.spin_pair(k)) for i in range(n) for j in range(i)]
    tables += [((i,), np.array([-h, h])) for i in range(n)]
    assert eliminate(((2,) * n, tables, 0.0)).log_z == close(lattices.curie_weiss(n, k, h))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "log_z"),
    [("Segmentation_11", -55.2530441787), ("Alchemy_11", 1396.0094457811), ("Grids_11", 390.0771664738)],
)
def test_published_files(shared, name, log_z) -> None:
    text = (shared / "data/others/uai" / f"{name}.uai").read_text()
    assert eliminate(lattices.read_uai(text), threads=2).log_z == pytest.approx(log_z, abs=1e-9)


def test_threads_do_not_matter(monkeypatch) -> None:
    factors = lattices.lattice(5, 6, 0.44, periodic=True)
    alone = eliminate(factors).log_z
    monkeypatch.setattr(elimination, "_AT_ONCE", 7)
    assert eliminate(factors, threads=3).log_z == alone


# Refusals.


@pytest.mark.parametrize(
    ("factors", "found"),
    [
        (lattices.lattice(16, 16, 0.44, periodic=True), r"width (2\d|3\d|4\d), .* entries"),
        (
            ((2,) * 40, [((i, j), np.zeros((2, 2))) for i in range(40) for j in range(i)], 0.0),
            "width 39 at least",
        ),
    ],
)
def test_wide_graphs_are_refused_with_their_width(factors, found) -> None:
    with pytest.raises(InputError, match=rf"{found}.*2\*\*27.*log_z\(model\).*ais_log_z"):
        eliminate(factors)


def test_too_much_to_keep(monkeypatch) -> None:
    monkeypatch.setattr(elimination, "LOG2_MOST_KEPT", 5.0)
    factors = lattices.lattice(4, 4, 0.44, periodic=True)
    eliminate(factors)
    with pytest.raises(InputError, match="messages of exact samples"):
        eliminate(factors, keep=True)


@pytest.mark.parametrize("clamped", [{2: 0}, {-1: 0}, {0: 2}])
def test_wrong_clamps_are_refused(clamped) -> None:
    with pytest.raises(InputError, match="clamped"):
        condition(((2, 2), [], 0.0), clamped)


# Orders.


@given(n=st.integers(1, 9), m=st.integers(0, 14), seed=seeds)
@settings(max_examples=min(50, settings().max_examples))
def test_orders_are_what_they_say(n, m, seed) -> None:
    cardinalities, tables, _ = lattices.random_factors(np.random.default_rng(seed), n, m, 3, 1.0)
    graph = interaction_graph(n, [scope for scope, _ in tables])
    order = find_order(cardinalities, graph)
    assert order is not None
    assert sorted(order.units) == list(range(n))
    assert order == measure_order(graph, [math.log2(q) for q in cardinalities], order.units)
    assert least_width(graph) <= order.width


@pytest.mark.parametrize(("rows", "columns", "width"), [(1, 50, 1), (5, 5, 5), (8, 20, 8)])
def test_lattices_cost_no_more_than_row_by_row(rows, columns, width) -> None:
    pairs = lattices.lattice_pairs(rows, columns, periodic=False)
    order = find_order((2,) * (rows * columns), interaction_graph(rows * columns, pairs))
    assert order is not None
    assert order.log2_work <= width + 1 + math.log2(rows * columns)


def test_a_bipartite_graph_has_the_width_of_its_smaller_side() -> None:
    pairs = [(i, 30 + j) for i in range(30) for j in range(8)]
    order = find_order((2,) * 38, interaction_graph(38, pairs))
    assert order is not None
    assert order.width == 8


# Samples.

_DRAWS = 20_000
_FALSE_ALARM = 1e-6


def _chi_square(
    states: np.ndarray, log_f: np.ndarray, samples: np.ndarray, cardinalities
) -> tuple[float, int]:
    """Pearson's statistic of samples (sample, unit) against all states, rare ones put together, and its degrees."""
    expected = np.exp(log_f - logsumexp(log_f)) * len(samples)
    found = np.bincount(np.ravel_multi_index(tuple(samples.T), cardinalities), minlength=len(states))
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    found = np.append(found[~rare], found[rare].sum())
    used = expected > 0
    return float(((found - expected)[used] ** 2 / expected[used]).sum()), int(used.sum()) - 1


@pytest.mark.parametrize("seed", range(4))
def test_samples_have_the_models_distribution(seed) -> None:
    """False alarm: 1e-6 each, by the chi-square distribution with at least ten expected in a cell."""
    factors = lattices.random_factors(np.random.default_rng(seed), 7, 12, 3, 0.7)
    samples = eliminate(factors, keep=True).sample(_DRAWS, np.random.default_rng(100 + seed))
    statistic, degrees = _chi_square(*lattices.log_f_of_all(*factors), samples, factors[0])
    assert statistic < chi2.isf(_FALSE_ALARM, degrees)


def test_a_sampler_in_the_wrong_order_is_rejected() -> None:
    """The mutant draws units in the order in which they were summed out, given what is not drawn yet."""
    factors = lattices.lattice(3, 3, 0.5, periodic=False)
    kept = eliminate(factors, keep=True)
    forward = type(kept)(kept.log_z, kept.order, kept.cardinalities, kept.buckets[::-1])
    samples = forward.sample(_DRAWS, np.random.default_rng(100))
    statistic, degrees = _chi_square(*lattices.log_f_of_all(*factors), samples, factors[0])
    assert statistic > chi2.isf(_FALSE_ALARM, degrees)


def test_samples_of_a_torus_have_its_energy() -> None:
    """d log Z / dK is the mean energy: within 6 standard errors, false alarm 2e-9."""
    n, k, step = 6, 0.44, 1e-5
    kept = eliminate(lattices.lattice(n, n, k, periodic=True), keep=True)
    spins = 2.0 * kept.sample(4000, np.random.default_rng(3)) - 1
    pairs = np.array(lattices.lattice_pairs(n, n, periodic=True))
    energy = (spins[:, pairs[:, 0]] * spins[:, pairs[:, 1]]).sum(axis=1)
    slope = (lattices.kaufman(n, n, k + step) - lattices.kaufman(n, n, k - step)) / (2 * step)
    assert abs(energy.mean() - slope) < 6 * energy.std() / math.sqrt(len(energy))


def test_order_for_an_empty_model() -> None:
    assert order_for(((), [], 0.0)).units == ()
    assert eliminate(((), [], 1.5)).log_z == 1.5


# Models.


def ising_of(pairs: list[tuple[int, int]], n: int, coupling: float, field: float = 0.0, **kwargs) -> mp.Ising:
    matrix = np.zeros((n, n))
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = coupling
    return mp.Ising(matrix, np.full(n, field), **kwargs)


def test_models_on_graphs_are_eliminated() -> None:
    torus = ising_of(lattices.lattice_pairs(8, 8, periodic=True), 64, 0.44)
    assert mp.exact_log_z(torus) == close(lattices.kaufman(8, 8, 0.44), 1e-11)
    all_pairs = [(i, j) for i in range(20) for j in range(i)]
    assert mp.exact_log_z(ising_of(all_pairs, 20, 0.1, 0.2)) == close(
        lattices.curie_weiss(20, 0.1, 0.2), 1e-11
    )
    with pytest.raises(InputError, match=r"width 3\d.*log_z\(model\)"):
        mp.exact_log_z(ising_of(lattices.lattice_pairs(16, 16, periodic=True), 256, 0.44))


def test_hard_constraints_are_counted_exactly() -> None:
    """Proper colourings of a cycle of n with q colours: (q - 1)^n + (-1)^n (q - 1)."""
    with np.errstate(divide="ignore"):
        unequal = np.log(1 - np.eye(3))
    cycle = [((i, (i + 1) % 30), unequal) for i in range(30)]
    assert mp.exact_log_z(((3,) * 30, cycle, 0.0)) == close(math.log(2**30 + 2))
    odd = [((i, (i + 1) % 3), unequal[:2, :2]) for i in range(3)]
    with pytest.raises(InputError, match="forbid every state"):
        mp.exact_log_z(((2,) * 3, odd, 0.0))


@pytest.mark.parametrize("hidden", [None, [0, 3]])
def test_clamped_sites_are_those_of_the_user(hidden) -> None:
    rng = np.random.default_rng(2)
    cardinalities, tables, _ = lattices.random_factors(rng, 5, 8, 3, 1.0)
    model = mp.FactorGraph(cardinalities, tables, hidden=hidden)
    clamped = {3: cardinalities[3] - 1, 1: 0}
    states, log_f = lattices.log_f_of_all(cardinalities, tables, 0.0)
    agree = np.all([states[:, site] == state for site, state in clamped.items()], axis=0)
    given_model = model.given(clamped)
    assert mp.exact_log_z(given_model) == close(float(logsumexp(log_f[agree])))
    assert given_model.n_visible == (3 if hidden is None else 2)


def test_an_rbm_with_clamped_units() -> None:
    rng = np.random.default_rng(4)
    rbm = mp.RBM(rng.standard_normal((3, 2)), rng.standard_normal(3), rng.standard_normal(2), visible="spin")
    parts = [mp.exact_log_z(rbm.given({1: state, 4: other})) for state in (0, 1) for other in (0, 1)]
    assert float(logsumexp(parts)) == close(mp.exact_log_z(rbm))
    with pytest.raises(InputError, match="all units"):
        rbm.given(dict.fromkeys(range(5), 0))


@pytest.mark.parametrize(
    "model",
    [
        ising_of([(0, 1), (1, 2), (2, 3), (0, 3)], 4, 0.6, 0.2),  # two colours, one summed out
        ising_of([(0, 1), (1, 2), (0, 2), (2, 3)], 4, 0.6, 0.2, hidden=[1]),
        mp.RBM(np.array([[1.0, -1.0], [0.5, 2.0]]), [0.1, -0.4], [0.3, 0.0]),
        mp.DBM(
            [np.array([[1.0, -1.0], [0.5, 2.0]]), np.array([[1.0], [-1.5]])],
            [np.array([0.1, -0.4]), np.array([0.3, 0.0]), np.array([-0.2])],
        ),
        mp.DBN(
            [(np.array([[1.0, -1.0], [0.5, 2.0]]), np.array([0.1, -0.4]), np.zeros(2))],
            mp.RBM([[1.0], [-1.5]], [0.3, 0.0], [-0.2]),
        ),
    ],
    ids=repr,
)
def test_exact_samples_have_the_distribution_of_visible_units(model) -> None:
    """Frequencies against exact probabilities by long sums; false alarm 1e-6 by the chi-square distribution."""
    drawn = mp.sample(model, _DRAWS, exact=True, seed=5)
    values = np.unique(drawn)
    assert len(values) == 2
    bits = (drawn == values[1]).astype(int)
    states = np.array(np.meshgrid(*[[0, 1]] * model.n_visible, indexing="ij")).reshape(model.n_visible, -1).T
    if isinstance(model, mp.DBN):
        # p(v) of two visible units above two hidden ones, by the joint states.
        layer, top = model.directed[0], model.top
        hidden = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        log_h = top.log_f(hidden) - mp.exact_log_z(top)
        on = 1 / (1 + np.exp(-(hidden @ layer.weights.T + layer.visible_bias)))
        p = [(np.exp(log_h) * np.prod(np.where(v, on, 1 - on), axis=1)).sum() for v in states]
        log_f = np.log(p)
    else:
        log_f = _visible_log_f(model, states)
    statistic, degrees = _chi_square(states, log_f, bits, (2,) * model.n_visible)
    assert statistic < chi2.isf(_FALSE_ALARM, degrees)


def _visible_log_f(model: mp.RBM, states: np.ndarray) -> np.ndarray:
    """log f (state,) of visible states by enumeration of all units."""
    everything, log_f = lattices.log_f_of_all(*model.as_factors())
    own = everything[:, : model.n_visible]
    return np.array([logsumexp(log_f[(own == state).all(axis=1)]) for state in states])
