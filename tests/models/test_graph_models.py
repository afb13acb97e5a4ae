"""Ising models, Potts models and factor graphs: what they mean and refuse, their files, hidden sites."""

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp

import meltpoint as mp
from contract.graphs import CASES, symmetric
from meltpoint.models import graph as graph_module
from meltpoint.models.clamped import weigh_hidden

every_case = pytest.mark.parametrize("name", CASES)


def all_log_f(model):
    """States (state, unit) of all sites, visible ones first, and log f (state,), by its factors."""
    cardinalities, factors, constant = model.as_factors()
    states = np.array(list(itertools.product(*map(range, cardinalities))), np.uint8)
    log_f = np.full(len(states), constant)
    for scope, table in factors:
        log_f += table[tuple(states[:, i] for i in scope)]
    return states, log_f


# What they mean.


@given(seed=st.integers(0, 10**6), n=st.integers(2, 6), units=st.sampled_from(["spin", "bernoulli"]))
@settings(max_examples=min(25, settings().max_examples))
def test_ising_is_half_the_quadratic_form(seed, n, units):
    rng = np.random.default_rng(seed)
    couplings, fields = symmetric(rng, n), rng.normal(size=n)
    model = mp.Ising(couplings, fields, units, constant=0.7)
    x = np.array(list(itertools.product((-1, 1) if units == "spin" else (0, 1), repeat=n)))
    expected = np.einsum("si,ij,sj->s", x, couplings, x) / 2 + x @ fields + 0.7
    np.testing.assert_allclose(model.log_f(x), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        mp.Ising(sparse.coo_array(couplings), fields, units, constant=0.7).log_f(x),
        model.log_f(x),
        rtol=1e-12,
    )


@given(seed=st.integers(0, 10**6), mixed=st.booleans())
@settings(max_examples=min(25, settings().max_examples))
def test_a_gauge_changes_no_probability(seed, mixed):
    rng = np.random.default_rng(seed)
    counts = [2, 3, 4] if mixed else [3, 3, 3]
    pairs = list(itertools.combinations(range(3), 2))
    couplings = {(i, j): rng.normal(size=(counts[i], counts[j])) for i, j in pairs}
    fields = [rng.normal(size=q) for q in counts]
    shifted, moved = dict(couplings), [field + rng.normal() for field in fields]
    for i, j in pairs:  # what depends on one of the two states goes from the fields to the coupling
        one, other = rng.normal(size=counts[i]), rng.normal(size=counts[j])
        shifted[i, j] = couplings[i, j] + one[:, np.newaxis] + other
        moved[i], moved[j] = moved[i] - one, moved[j] - other
    before, after = mp.Potts(couplings, fields), mp.Potts(shifted, moved)
    x = np.array(list(itertools.product(*map(range, counts))))
    logs = [model.log_f(x) - mp.exact_log_z(model) for model in (before, after)]
    np.testing.assert_allclose(*logs, rtol=1e-11, atol=1e-11)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=min(25, settings().max_examples))
def test_the_numbering_of_sites_changes_no_probability(seed):
    rng = np.random.default_rng(seed)
    couplings, fields, order = (
        symmetric(rng, 5, rng.random((5, 5)) < 0.7),
        rng.normal(size=5),
        rng.permutation(5),
    )
    couplings = np.triu(couplings, 1) + np.triu(couplings, 1).T
    x = np.array(list(itertools.product((-1, 1), repeat=5)))
    renumbered = mp.Ising(couplings[order][:, order], fields[order])
    np.testing.assert_allclose(
        renumbered.log_f(x[:, order]), mp.Ising(couplings, fields).log_f(x), rtol=1e-11
    )


@every_case
def test_factors_have_the_same_log_f(name):
    model = CASES[name]
    states, log_f = all_log_f(model)
    rows, which = np.unique(states[:, : model.n_visible], axis=0, return_inverse=True)
    expected = [logsumexp(log_f[which.reshape(-1) == k]) for k in range(len(rows))]
    np.testing.assert_allclose(model.log_f(model.decode(rows)), expected, rtol=1e-12, atol=1e-12)


def test_a_dense_array_and_a_dict_are_the_same_potts_model():
    rng = np.random.default_rng(1)
    couplings = rng.normal(size=(3, 3, 4, 4))
    couplings[np.tril_indices(3)] = 0
    couplings[0, 2] = 0
    fields = rng.normal(size=(3, 4))
    dense = mp.Potts(couplings + couplings.transpose(1, 0, 3, 2), fields)
    some = mp.Potts({(1, 0): couplings[0, 1].T, (1, 2): couplings[1, 2]}, list(fields))
    assert dense.pairs.tolist() == some.pairs.tolist() == [[0, 1], [1, 2]]
    x = rng.integers(0, 4, (20, 3))
    np.testing.assert_array_equal(dense.log_f(x), some.log_f(x))


def test_hidden_sites_by_number_and_by_mask():
    couplings = symmetric(np.random.default_rng(2), 4)
    for hidden in ([3, 1], np.array([1, 3]), [False, True, False, True]):
        model = mp.Ising(couplings, np.zeros(4), hidden=hidden)
        assert model.hidden.tolist() == [1, 3]
        assert repr(model) == "Ising 2-2 spin"


# What they refuse.

J = symmetric(np.random.default_rng(3), 3)
P = np.zeros((2, 2, 3, 3))
TABLE = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mp.Ising(np.triu(J), np.zeros(3)), "above the diagonal only, .*pass J \\+ J.T"),
        (lambda: mp.Ising(sparse.triu(J), np.zeros(3)), "pass J \\+ J.T"),
        (lambda: mp.Ising(J + np.triu(J), np.zeros(3)), "not symmetric"),
        (
            lambda: mp.Ising(J + np.eye(3), np.zeros(3)),
            "3 nonzero values on the diagonal.*square of a spin is 1",
        ),
        (lambda: mp.Ising(J + np.eye(3), np.zeros(3), "bernoulli"), "add half of it to the fields"),
        (lambda: mp.Ising(J[:2], np.zeros(3)), "shape \\(2, 3\\).*mp.RBM"),
        (lambda: mp.Ising(J, np.zeros(2)), "fields of length 2, expected 3"),
        (lambda: mp.Ising(J * np.nan, np.zeros(3)), "NaN or infinite"),
        (lambda: mp.Ising(sparse.csr_array(J * np.nan), np.zeros(3)), "NaN or infinite"),
        (lambda: mp.Ising(J, np.zeros(3), "potts"), "units 'potts'"),
        (lambda: mp.Ising(J, np.zeros(3), hidden=[3]), "hidden=\\[3\\], expected different numbers"),
        (lambda: mp.Ising(J, np.zeros(3), hidden=[1, 1]), "different numbers of sites"),
        (lambda: mp.Ising(J, np.zeros(3), hidden=[0.5]), "different numbers of sites"),
        (lambda: mp.Ising(J, np.zeros(3), hidden=[0, 1, 2]), "at least one visible"),
        (lambda: mp.Ising(J, np.zeros(3)).log_f([[0, 1, 1]]), "2 \\* x - 1"),
        (lambda: mp.Ising(J, np.zeros(3), "bernoulli").log_f([[-1, 1, 1]]), "these are spins"),
        (lambda: mp.Ising(J, np.zeros(3), hidden=[0]).log_f([[1, 1, 1]]), "3 columns, expected 2"),
        (lambda: mp.Potts(np.zeros((2, 2, 3, 2)), np.zeros((2, 3))), "expected \\(2, 2, 3, 3\\)"),
        (lambda: mp.Potts(P, [np.zeros(3), np.zeros(4)]), "a dict"),
        (lambda: mp.Potts(P, np.zeros(3)), "use mp.Ising"),
        (lambda: mp.Potts(_upper(), np.zeros((2, 3))), "J \\+ J.transpose\\(1, 0, 3, 2\\)"),
        (lambda: mp.Potts(_upper() * 2 + _upper().transpose(1, 0, 3, 2), np.zeros((2, 3))), "not symmetric"),
        (lambda: mp.Potts(P + 1, np.zeros((2, 3))), "site 0 with itself"),
        (lambda: mp.Potts({(0, 1): P[0, 0], (1, 0): P[0, 0]}, np.zeros((2, 3))), "given twice"),
        (lambda: mp.Potts({(0, 2): P[0, 0]}, np.zeros((2, 3))), "beyond the last site"),
        (lambda: mp.Potts({(0, 0): P[0, 0]}, np.zeros((2, 3))), "a site with itself"),
        (lambda: mp.Potts({"01": P[0, 0]}, np.zeros((2, 3))), "not pairs of sites"),
        (lambda: mp.Potts({(0, 1): TABLE}, np.zeros((2, 3))), "couplings\\[0, 1\\] of shape \\(2, 3\\)"),
        (lambda: mp.Potts({}, [[0.0], [0.0, 1.0]]), "one state at site 0"),
        (lambda: mp.Potts({}, np.zeros((1, 256))), "from 256 to 256.*1 to 255 states"),
        (lambda: mp.Potts({(0, 1): np.full((3, 3), np.nan)}, np.zeros((2, 3))), "NaN"),
        (lambda: mp.Potts({}, np.zeros((2, 3))).log_f([[0, 3]]), "values from 0 to 3"),
        (lambda: mp.Potts({}, [np.zeros(2), np.zeros(3)]).log_f([[2, 0]]), "state 2 of visible site 0"),
        (lambda: mp.FactorGraph([2, 300], []), "merge states"),
        (lambda: mp.FactorGraph([2, 0], []), "from 0 to 2"),
        (lambda: mp.FactorGraph([], []), "no variables"),
        (lambda: mp.FactorGraph([2.5], []), "whole numbers"),
        (lambda: mp.FactorGraph([2, 3], [((0, 1), TABLE.T)]), "shape \\(3, 2\\).*transpose"),
        (lambda: mp.FactorGraph([2, 3], [((0, 0), TABLE)]), "scope \\(0, 0\\)"),
        (lambda: mp.FactorGraph([2, 3], [((0, 2), TABLE)]), "scope \\(0, 2\\)"),
        (lambda: mp.FactorGraph([2, 3], [((-1, 0), TABLE)]), "scope of factor 0"),
        (lambda: mp.FactorGraph([2, 3], [TABLE]), "not a pair|scope"),
        (lambda: mp.FactorGraph([2, 3], [((0, 1), TABLE + np.inf)]), "NaN or infinite"),
        (lambda: mp.FactorGraph([2, 3], [((0, 1), [["a"]])]), "cannot be read"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(mp.InputError, match=message):
        make()


def _upper():
    couplings = np.zeros((2, 2, 3, 3))
    couplings[0, 1] = np.arange(9).reshape(3, 3)
    return couplings


def test_hard_constraints_are_refused_and_a_floor_is_accepted():
    with np.errstate(divide="ignore"):
        table = np.log(np.array([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(
        mp.InputError, match=r"2 values of -inf in factor 0: the factor forbids states.*np\.maximum"
    ):
        mp.FactorGraph([2, 2], [((0, 1), table)])
    floored = mp.FactorGraph([2, 2], [((0, 1), np.maximum(table, table.max() - 20))])
    assert mp.exact_log_z(floored) == pytest.approx(np.log(2), abs=1e-6)


def test_states_of_one_value_are_taken():
    model = mp.FactorGraph([1, 2], [((0, 1), [[0.0, 1.0]])])
    np.testing.assert_allclose(model.log_f([[0, 0], [0, 1]]), [0, 1])
    assert mp.sample(model, 3, steps=2, moves=1)[:, 0].tolist() == [0, 0, 0]


# Files.


@every_case
def test_files_keep_models_whole(name, tmp_path):
    model = CASES[name]
    mp.save(model, tmp_path / "model.npz", note="kept")
    back = mp.load(tmp_path / "model.npz")
    assert repr(back) == repr(model)
    for key, array in model.arrays().items():
        np.testing.assert_array_equal(back.arrays()[key], array)
    x = model.decode(np.zeros((1, model.n_visible), np.uint8))
    np.testing.assert_array_equal(back.log_f(x), model.log_f(x))
    mp.save(model, tmp_path / "small.npz", dtype=np.float32)
    np.testing.assert_array_equal(mp.load(tmp_path / "small.npz").hidden, model.hidden)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("spin dense", {"pairs": np.array([[0, 1]])}, "pairs of shape"),
        ("spin dense", {"pairs": np.array([[0, 9]]), "couplings": np.ones(1)}, "beyond the last site"),
        ("spin dense", {"pairs": np.array([[0, 1], [1, 0]]), "couplings": np.ones(2)}, "given twice"),
        ("spin dense", {"pairs": np.array([[0, 1.5]]), "couplings": np.ones(1)}, "whole numbers"),
        ("spin dense", {"hidden": np.array([-1])}, "whole numbers"),
        ("potts dense", {"couplings": np.ones(3)}, "3 couplings"),
        ("potts dense", {"cardinalities": np.array([3, 3])}, "beyond the last site|fields"),
        ("order three", {"values": np.ones(3)}, "3 values"),
        ("order three", {"orders": np.array([9, 9])}, "scopes"),
        ("order three", {"cardinalities": np.array([2, 10**9, 2])}, "cardinalities from"),
    ],
)
def test_files_that_do_not_fit(name, changes, message, tmp_path):
    mp.save(CASES[name], tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        entries = dict(file) | changes
    np.savez(tmp_path / "bad.npz", **entries)
    with pytest.raises(mp.InputError, match=message):
        mp.load(tmp_path / "bad.npz")


# Hidden sites.


@pytest.mark.parametrize("name", ["bernoulli dense, hidden coupled", "order three, mixed, hidden"])
def test_annealed_log_f_is_unbiased_where_hidden_sites_cannot_be_added_up(name):
    """Means of 6,000 weights each, six standard errors: a false alarm once in 10^8 for each of few states."""
    model = CASES[name]
    states = np.unique(model.encode(mp.sample(model, 50, steps=3, moves=1)), axis=0)
    generators = [np.random.default_rng([5, k]) for k in range(len(states))]
    log_weights = weigh_hidden(model.mrf, states, generators, 25 * 6000)
    relative = np.exp(log_weights - model.log_f(model.decode(states))[:, np.newaxis])
    error = relative.std(axis=1) / np.sqrt(relative.shape[1])
    assert (np.abs(relative.mean(axis=1) - 1) < 6 * error + 1e-9).all()
    with mock.patch.object(graph_module, "_ENUMERATED", 0):
        estimate = model.log_f_estimate(model.decode(states))
    assert not estimate.is_exact
    np.testing.assert_allclose(estimate.values, model.log_f(model.decode(states)), atol=0.3)


def test_csl_where_visible_sites_are_independent_given_hidden_ones():
    """With no coupling CSL is exact; visible sites that are coupled are refused."""
    couplings = np.zeros((4, 4))
    model = mp.Ising(couplings, [0.3, -0.2, 0.5, 0.1], hidden=[1, 3])
    x = [[1, 1], [-1, 1]]
    found = mp.csl_log_prob(model, x, steps=20, chains=3)
    np.testing.assert_allclose(found.values, model.log_f(x) - mp.exact_log_z(model), rtol=1e-6)
    with pytest.raises(mp.InputError, match="depend on each other"):
        mp.csl_log_prob(CASES["spin dense"], np.ones((1, 4)), steps=5, chains=2)
    with pytest.raises(mp.InputError, match="do not all have two states"):
        mp.csl_log_prob(CASES["potts dense, hidden coupled"], [[0]], steps=5, chains=2)


@pytest.mark.slow
def test_csl_agrees_with_the_exact_value():
    """200,000 samples of nearly independent sites: an error of 0.05 nats would be a hundred standard errors."""
    rng = np.random.default_rng(4)
    couplings = np.zeros((5, 5))
    couplings[:3, 3:] = rng.normal(0, 0.7, (3, 2))
    couplings[3, 4] = 0.8
    model = mp.Ising(couplings + couplings.T, rng.normal(0, 0.3, 5), "bernoulli", hidden=[3, 4])
    x = np.array(list(itertools.product((0, 1), repeat=3)))
    found = mp.csl_log_prob(model, x, steps=500, chains=500, every=2)
    np.testing.assert_allclose(found.values, model.log_f(x) - mp.exact_log_z(model), atol=0.05)
