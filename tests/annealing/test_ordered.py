"""Sums of rows whose terms are added in order."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.kernels.ordered import ordered_product, strips_for_products
from meltpoint.kernels.rows import STRIP_BYTES


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 300), st.floats(0, 1), st.integers(0, 99))
def test_the_sum_is_the_product_and_does_not_depend_on_other_rows(n_rows, n_units, width, rate, seed):
    rng = np.random.default_rng(seed)
    bits = (rng.random((n_rows, n_units)) < rate).astype(np.uint8)
    weights = rng.normal(size=(n_units, width))
    sums = ordered_product(bits, weights)
    np.testing.assert_allclose(sums, bits @ weights, rtol=0, atol=1e-12)
    in_order = [sum((weights[unit] for unit in np.flatnonzero(row)), np.zeros(width)) for row in bits]
    np.testing.assert_array_equal(sums, in_order)
    np.testing.assert_array_equal(ordered_product(bits[:1], np.asfortranarray(weights)), sums[:1])
    np.testing.assert_array_equal(ordered_product(bits, weights[:, 0]), sums[:, 0])


@given(
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 20),
    st.integers(0, 40),
    st.integers(1, 70),
    st.integers(0, 99),
)
def test_products_add_in_order_wherever_a_row_lies(real, n_rows, n_units, width, seed):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n_rows, n_units)).astype(real)
    weights = rng.normal(size=(n_units, width)).astype(real)
    in_order = np.zeros((n_rows, width), real)
    for unit in range(n_units):
        in_order += states[:, unit, np.newaxis] * weights[unit]
    found = ordered_product(states, strips_for_products(weights))
    assert found.dtype == real
    np.testing.assert_array_equal(found, in_order)
    np.testing.assert_array_equal(ordered_product(states, np.asfortranarray(weights)), in_order)
    np.testing.assert_array_equal(ordered_product(states[n_rows // 2 :], weights), in_order[n_rows // 2 :])
    np.testing.assert_array_equal(ordered_product(states, weights[:, 0]), in_order[:, 0])


def test_products_of_bits_are_those_of_numbers():
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(30, 40))
    for states in (rng.random((5, 30)) < 0.5, rng.integers(0, 2, (5, 30), np.uint8)):
        expected = ordered_product(states.astype(np.float64), weights)
        np.testing.assert_array_equal(ordered_product(states, weights), expected)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda strips: pickle.loads(pickle.dumps(strips))])
def test_copies_of_strips_start_cache_lines(again):
    """Compiled code ends the process where they do not."""
    weights = np.random.default_rng(0).normal(size=(24, 30))
    strips = strips_for_products(weights)
    copies = [again(strips) for _ in range(20)]
    assert all(each.flat.ctypes.data % STRIP_BYTES == 0 for each in copies)
    product = ordered_product(np.ones((1, 24)), copies[0])
    np.testing.assert_array_equal(product, ordered_product(np.ones((1, 24)), strips))
