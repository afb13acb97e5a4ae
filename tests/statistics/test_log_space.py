"""Means of weights known by their logarithms: identities for any weights, and enumerated expectations."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp

from meltpoint.errors import InputError
from meltpoint.statistics.log_space import effective_sample_size, log_mean_error, log_mean_exp, log_sum_exp

SHIFTS = (0.0, 2.0**17, -(2.0**17), 2.0**30)  # far outside the range of exp


def log_weights(min_size: int = 1) -> st.SearchStrategy[np.ndarray]:
    """Multiples of 2**-10, so that a shift by a power of two is exact."""
    whole = st.integers(-8192, 8192)
    return arrays(np.int64, st.integers(min_size, 12), elements=whole).map(lambda k: k / 1024)


@given(log_weights())
def test_log_mean_exp_is_the_logarithm_of_the_mean(values) -> None:
    assert log_mean_exp(values) == pytest.approx(np.log(np.mean(np.exp(values))), rel=1e-13, abs=1e-13)


@given(log_weights())
def test_log_mean_exp_lies_between_the_mean_and_the_largest(values) -> None:
    assert values.mean() - 1e-12 <= log_mean_exp(values) <= values.max() + 1e-12


@given(log_weights(), st.sampled_from(SHIFTS), st.randoms())
def test_log_mean_exp_moves_with_its_weights_and_ignores_their_order(values, shift, random) -> None:
    shuffled = np.array(random.sample(values.tolist(), len(values)))
    assert log_mean_exp(shuffled + shift) == pytest.approx(log_mean_exp(values) + shift, rel=1e-15, abs=1e-13)


@given(log_weights(), st.integers(2, 5))
def test_repeating_a_sample(values, times) -> None:
    """The mean stays, the effective size multiplies, and the error falls as for so many more weights."""
    n, many = len(values), np.tile(values, times)
    assert log_mean_exp(many) == pytest.approx(log_mean_exp(values), rel=1e-13, abs=1e-13)
    assert effective_sample_size(many) == pytest.approx(times * effective_sample_size(values), rel=1e-12)
    if n > 1:
        factor = np.sqrt((n - 1) / (times * n - 1))
        assert log_mean_error(many) == pytest.approx(factor * log_mean_error(values), rel=1e-12, abs=1e-15)


@given(log_weights(min_size=2))
def test_error_and_effective_size_tell_the_same_spread(values) -> None:
    n = len(values)
    relative_variance = n / effective_sample_size(values) - 1  # of the weights, divided by n
    assert log_mean_error(values) ** 2 == pytest.approx(relative_variance / (n - 1), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("shift", SHIFTS)
@given(values=log_weights(min_size=2))
def test_error_and_effective_size_do_not_see_the_scale(values, shift) -> None:
    assert log_mean_error(values + shift) == log_mean_error(values)
    assert effective_sample_size(values + shift) == effective_sample_size(values)


@given(log_weights())
def test_effective_size_lies_between_one_and_the_number_of_weights(values) -> None:
    assert 1 - 1e-12 <= effective_sample_size(values) <= len(values) * (1 + 1e-12)


def test_effective_size_at_both_ends() -> None:
    assert effective_sample_size(np.full(7, -300.0)) == 7
    assert effective_sample_size(np.array([0.0, -800.0, -800.0])) == 1
    assert log_mean_error(np.full(7, -300.0)) == 0


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_squared_error_is_unbiased(n) -> None:
    """Over all samples of n draws, (error · mean)^2 has the variance of the mean as its expectation."""
    support, p = np.array([0.2, 1.0, 5.0]), np.array([0.5, 0.3, 0.2])
    expected = 0.0
    for drawn in itertools.product(range(3), repeat=n):
        drawn = np.array(drawn)
        expected += p[drawn].prod() * (log_mean_error(np.log(support[drawn])) * support[drawn].mean()) ** 2
    variance = p @ support**2 - (p @ support) ** 2
    assert expected == pytest.approx(variance / n, rel=1e-12)


@given(arrays(np.float64, (3, 4), elements=st.floats(-50, 50)), st.sampled_from([0, 1, -1]))
def test_axes(values, axis) -> None:
    rows = values.T if axis == 0 else values
    for function in (log_mean_exp, log_mean_error, effective_sample_size):
        np.testing.assert_allclose(function(values, axis=axis), [function(row) for row in rows], rtol=1e-12)


def test_one_weight_has_no_error() -> None:
    assert np.isnan(log_mean_error(np.array([1.0])))
    assert np.isnan(log_mean_error(np.zeros((5, 1)))).tolist() == [True] * 5
    assert np.isnan(log_mean_error(np.zeros((1, 5)), axis=0)).tolist() == [True] * 5


def test_no_weights() -> None:
    with pytest.raises(InputError, match="at least one"):
        log_mean_exp(np.zeros((3, 0)))


@pytest.mark.parametrize("shape", [(1,), (300,), (7, 4), (50, 4, 3), (20, 5, 300)])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1000.0])
def test_log_sum_exp_is_that_of_scipy(shape, scale) -> None:
    values = scale * np.random.default_rng(3).normal(size=shape)
    values.flat[1:3] = values.flat[0]
    for axis in range(-1, values.ndim):
        expected = logsumexp(values, axis=axis)
        np.testing.assert_allclose(log_sum_exp(values, axis), expected, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(
    "values",
    [[np.inf, 0], [-np.inf, -np.inf], [np.nan, 1], [np.inf, -np.inf], [np.inf, np.inf], [-np.inf, 3]],
)
def test_log_sum_exp_of_what_is_not_finite(values) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(log_sum_exp(np.array(values, float)), logsumexp(values))
