"""Exponentials and logarithms with the same bits on every machine, against NumPy's and SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from meltpoint.kernels.sigmoid import sigmoid, sum_softplus
from meltpoint.statistics import elementary

ODD = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 2.0**-1022, 1e308, -1e308, 709.7, -745.0, 0.5]
FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "expit": special.expit,
    "logit": special.logit,
    "softplus": lambda x: np.logaddexp(0.0, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(x=st.lists(st.floats() | st.floats(-1, 1) | st.floats(-800, 800), max_size=30))
def test_values_are_those_of_numpy(name, x):
    x = np.array(ODD + x)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](x)
    found = getattr(elementary, name)(x)
    # logit is a difference of logarithms, and so absolutely as exact as these are.
    tolerance = 4e-16 if name == "logit" else 1e-307
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=tolerance)


def test_shapes_and_types_are_those_of_the_argument():
    x = np.linspace(-1, 1, 10_000, dtype=np.float32).reshape(100, 100)[:, ::2]
    found = elementary.exp(x)
    assert (found.shape, found.dtype) == (x.shape, x.dtype)
    np.testing.assert_array_equal(found, elementary.exp(x.astype(np.float64)).astype(np.float32))
    assert type(elementary.log(2)) is np.float64


@given(st.floats(-800, 800) | st.just(-np.inf), st.floats(-800, 800) | st.just(-np.inf))
def test_logarithms_of_sums(x, y):
    found = elementary.log_add_exp(x, y)
    np.testing.assert_allclose(found, np.logaddexp(x, y), rtol=1e-15, atol=1e-300)


@given(st.lists(st.floats(-87, 87), min_size=1, max_size=70))
def test_kernels_have_the_same_values(x):
    x = np.array(x)
    np.testing.assert_allclose(sigmoid(x), elementary.expit(x), rtol=2e-15)
    np.testing.assert_allclose(
        sum_softplus(x[np.newaxis]), elementary.softplus(x).sum(), rtol=1e-13, atol=1e-15
    )
