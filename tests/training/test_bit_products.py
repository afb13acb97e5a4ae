"""Sparse products against matrix products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.kernels.bit_products import Coupling, list_rows, multiply, pair_sums, strips_of

KINDS = st.sampled_from([np.float32, np.float64])
COUNTS = hnp.arrays(np.uint8, st.tuples(st.integers(1, 7), st.integers(1, 40)), elements=st.integers(0, 2))


@given(COUNTS, st.integers(1, 70), KINDS, st.booleans())
@settings(deadline=None, max_examples=min(50, settings().max_examples))
def test_adding_rows_is_the_product(counts, n_columns, kind, transposed):
    rng = np.random.default_rng(0)
    shape = (counts.shape[1], n_columns)
    # Small whole numbers: every order of additions gives the same sum, so the comparison is exact.
    matrix = rng.integers(-9, 10, shape[::-1] if transposed else shape).astype(kind)
    matrix = matrix.T if transposed else matrix
    out = multiply(list_rows(counts), strips_of(matrix))
    assert out.dtype == kind
    np.testing.assert_array_equal(out, counts.astype(kind) @ matrix)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n_on", [0, 1, 3, 4, 7, 30])
def test_rows_are_added_in_a_fixed_order(kind, n_on):
    # Trained models keep their bits only as long as this order stays: four sums, what is left over goes to the first.
    matrix = np.random.default_rng(n_on).normal(size=(30, 20)).astype(kind)
    sums = np.zeros((4, 20), kind)
    for k, row in enumerate(matrix[:n_on]):
        sums[k % 4 if k < n_on - n_on % 4 else 0] += row
    counts = (np.arange(30) < n_on).astype(np.uint8)[np.newaxis]
    expected = ((sums[0] + sums[1]) + sums[2]) + sums[3]
    np.testing.assert_array_equal(multiply(list_rows(counts), strips_of(matrix))[0], expected)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("width", [5, 200, 300])
def test_a_coupling_multiplies_the_same_whichever_way_it_chooses(density, width):
    rng = np.random.default_rng(1)
    coupling = Coupling(rng.normal(size=(300, width)).astype(np.float32))
    lower = (rng.random((20, 300)) < density).astype(np.uint8)
    upper = (rng.random((20, width)) < density).astype(np.uint8)
    np.testing.assert_allclose(coupling.up(lower), lower @ coupling.weights, rtol=0, atol=1e-4)
    np.testing.assert_allclose(coupling.down(upper), upper @ coupling.weights.T, rtol=0, atol=1e-4)
    means = rng.random((20, width)).astype(np.float32)
    np.testing.assert_allclose(pair_sums(lower, means), lower.T @ means, rtol=0, atol=1e-4)


def test_a_coupling_notices_changed_weights():
    rng = np.random.default_rng(2)
    coupling = Coupling(rng.normal(size=(300, 100)).astype(np.float32))
    lower = (rng.random((20, 300)) < 0.1).astype(np.uint8)
    coupling.up(lower)
    coupling.weights *= 2
    coupling.changed()
    np.testing.assert_allclose(coupling.up(lower), lower @ coupling.weights, rtol=0, atol=1e-4)
