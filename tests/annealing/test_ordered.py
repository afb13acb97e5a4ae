"""Sums of rows whose terms are added in order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.kernels.ordered import sum_rows


@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 300), st.floats(0, 1), st.integers(0, 99))
def test_the_sum_is_the_product_and_does_not_depend_on_other_rows(n_rows, n_units, width, rate, seed):
    rng = np.random.default_rng(seed)
    bits = (rng.random((n_rows, n_units)) < rate).astype(np.uint8)
    weights = rng.normal(size=(n_units, width))
    sums = sum_rows(bits, weights)
    np.testing.assert_allclose(sums, bits @ weights, rtol=0, atol=1e-12)
    in_order = [sum((weights[unit] for unit in np.flatnonzero(row)), np.zeros(width)) for row in bits]
    np.testing.assert_array_equal(sums, in_order)
    np.testing.assert_array_equal(sum_rows(bits[:1], np.asfortranarray(weights)), sums[:1])
    np.testing.assert_array_equal(sum_rows(bits, weights[:, 0]), sums[:, 0])
