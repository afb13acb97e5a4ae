"""RBMs and DBMs as two-sided machines: conditionals and unnormalised probabilities against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from meltpoint.statistics.elementary import softplus
from oracle.driving import models
from oracle.driving.truth import f_visible
from oracle.tables import Layers, all_states, code

sizes = st.lists(st.integers(1, 3), min_size=2, max_size=4)
scales = st.floats(0, 5)
seeds = st.integers(0, 10_000)


def joint(model: DBM) -> tuple[np.ndarray, np.ndarray]:
    """f of every joint state as a table (even state, odd state), and which units are even."""
    layers = Layers(model.weights, model.biases)
    even = layers.layer_of_unit % 2 == 0
    states = all_states(even.size)
    table = np.zeros((2 ** even.sum(), 2 ** (~even).sum()))
    table[code(states[:, even]), code(states[:, ~even])] = np.exp(layers.log_f())
    return table, even


@given(sizes, scales, seeds)
@settings(max_examples=min(40, settings().max_examples), deadline=None)
def test_log_f_of_even_states_sums_out_the_odd_side(sizes, scale, seed) -> None:
    model = models.dbm(seed, sizes, scale)
    table, even = joint(model)
    np.testing.assert_allclose(model.mrf.log_f(all_states(even.sum())), np.log(table.sum(axis=1)), atol=1e-11)


@given(sizes, scales, seeds)
@settings(max_examples=min(40, settings().max_examples), deadline=None)
def test_conditionals_are_those_of_the_joint_distribution(sizes, scale, seed) -> None:
    model = models.dbm(seed, sizes, scale)
    two, (table, even) = model.mrf, joint(model)
    n_even, n_odd = int(even.sum()), int((~even).sum())
    on = table @ all_states(n_odd) / table.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(two.odd_given_even(all_states(n_even)), on, rtol=1e-9, atol=1e-14)
    on = table.T @ all_states(n_even) / table.sum(axis=0)[:, np.newaxis]
    np.testing.assert_allclose(two.even_given_odd(all_states(n_odd)), on, rtol=1e-9, atol=1e-14)


@given(st.integers(1, 5), st.integers(1, 5), scales, seeds)
@settings(max_examples=min(40, settings().max_examples), deadline=None)
def test_rbm(n_visible, n_hidden, scale, seed) -> None:
    rbm = models.rbm(seed, n_visible, n_hidden, scale)
    v, h = all_states(n_visible), all_states(n_hidden)
    np.testing.assert_allclose(rbm.log_f(v), np.log(f_visible(rbm)), atol=1e-11)
    np.testing.assert_array_equal(rbm.hidden_given_visible(v), rbm.mrf.odd_given_even(v))
    np.testing.assert_array_equal(rbm.visible_given_hidden(h), rbm.mrf.even_given_odd(h))
    assert rbm.layer_sizes == (rbm.n_visible, rbm.n_hidden) == (n_visible, n_hidden)


def test_sides_of_a_deep_machine() -> None:
    two = models.dbm(1, [5, 4, 3, 2, 1]).mrf
    assert (two.n_even, two.n_odd) == (5 + 3 + 1, 4 + 2)
    assert [(s.start, s.stop) for s in two.even_slices] == [(0, 5), (5, 8), (8, 9)]
    assert [(s.start, s.stop) for s in two.odd_slices] == [(0, 4), (4, 6)]
    assert [(b.even_layer, b.odd_layer, b.weights.shape) for b in two.blocks] == [
        (0, 0, (5, 4)),
        (1, 0, (3, 4)),
        (1, 1, (3, 2)),
        (2, 1, (1, 2)),
    ]


@given(st.floats(-1e300, 1e300))
def test_softplus_neither_overflows_nor_loses_small_values(x) -> None:
    value = float(softplus(np.array([x]))[0])
    assert np.isfinite(value)
    assert value >= max(x, 0)
    if x < -40:
        assert value == pytest.approx(np.exp(x), rel=1e-12, abs=1e-300)


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(1, 3), st.integers(1, 300)),
        elements=st.floats(-100, 100, width=32),
        fill=st.floats(-2, 2, width=32),
    )
)
def test_sums_of_softplus_are_sums_of_softplus(x) -> None:
    expected = softplus(x.astype(np.float64)).sum(axis=-1)
    half_a_digit = np.finfo(x.dtype).eps / 2
    # For each unit an exponential (two), a sum and a product (one each), and on the other side a logarithm (one).
    np.testing.assert_allclose(
        sum_softplus(x), expected, rtol=4 * half_a_digit, atol=5 * x.shape[1] * half_a_digit
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_long_sum_of_softplus_does_not_overflow(dtype) -> None:
    assert sum_softplus(np.zeros(5000, dtype)) == pytest.approx(5000 * np.log(2), rel=1e-6)


def test_names_that_print() -> None:
    rbm = models.rbm(0, 3, 2)
    assert repr(rbm) == "RBM 3-2"
    assert repr(models.dbm(0, [4, 3, 2])) == "DBM 4-3-2"
    assert repr(models.dbn(0, [5, 3, 2])) == "DBN 5-3-2"
    assert repr(DBN([], rbm)) == "DBN 3-2"


def test_the_undirected_part() -> None:
    rbm, dbm, dbn = models.rbm(0, 3, 2), models.dbm(0, [3, 2]), models.dbn(0, [5, 3, 2])
    assert rbm.undirected is rbm
    assert dbm.undirected is dbm
    assert dbn.undirected is dbn.top
    assert dbn.mrf is dbn.top.mrf


def test_parameters_are_copies_that_cannot_be_written_to() -> None:
    weights = np.ones((2, 3))
    rbm = RBM(weights, [0, 0], [[1], [2], [3]])
    weights[0, 0] = 7
    assert rbm.weights[0, 0] == 1
    assert rbm.hidden_bias.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        rbm.weights[0, 0] = 2
