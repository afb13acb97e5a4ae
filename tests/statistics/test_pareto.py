"""The tail's shape: against exact generalised Pareto samples, an independent fit, and weights without a tail."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import genpareto

from meltpoint.statistics.diagnostics import fit_shape, pareto_k


def quantiles(shape: float, n: int) -> np.ndarray:
    """A sample (value,) of n that lies exactly as the generalised Pareto distribution says."""
    return genpareto.ppf((np.arange(n) + 0.5) / n, shape)


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.3, 0.7, 1.2])
def test_the_shape_of_an_exact_sample(shape):
    # Zhang and Stephens give an error of (1 + k) / sqrt(n) to a random sample; quantiles have none of it.
    assert fit_shape(quantiles(shape, 2000)) == pytest.approx(shape, abs=0.02)


@pytest.mark.parametrize("shape", [-0.2, 0.1, 0.5, 0.9])
def test_random_samples_agree_with_maximum_likelihood(shape):
    drawn = np.sort(genpareto.rvs(shape, size=2000, random_state=1))
    likeliest, _, _ = genpareto.fit(drawn, floc=0)
    assert fit_shape(drawn) == pytest.approx(likeliest, abs=0.02)
    assert fit_shape(drawn) == pytest.approx(shape, abs=6 * (1 + shape) / np.sqrt(2000))


@given(st.floats(-300, 300), st.integers(0, 2**32))
def test_the_scale_and_the_order_of_the_weights_do_not_matter(shift, seed):
    rng = np.random.default_rng(seed)
    log_weights = rng.normal(0, 2, 200)
    assert pareto_k(rng.permutation(log_weights) + shift) == pytest.approx(pareto_k(log_weights), abs=1e-6)


@pytest.mark.parametrize(("shape", "n"), [(0.3, 2000), (0.7, 2000), (1.0, 5000)])
def test_the_tail_of_weights(shape, n):
    tail = int(3 * np.sqrt(n))
    drawn = genpareto.rvs(shape, size=(50, n), random_state=2)
    found = np.mean([pareto_k(np.log(row)) for row in drawn])
    expected = (tail * shape + 5) / (tail + 10)  # the prior: ten weights of shape one half
    assert found == pytest.approx(expected, abs=6 * (1 + shape) / np.sqrt(50 * tail) + 0.02)


def test_bounded_weights_have_no_tail_and_wild_ones_have_no_mean():
    rng = np.random.default_rng(0)
    assert pareto_k(np.log(rng.uniform(1, 2, 1000))) < 0
    assert pareto_k(rng.normal(0, 6, 1000)) > 1


@pytest.mark.parametrize(
    "log_weights",
    [np.arange(24.0), np.zeros(100), np.full(100, -np.inf), np.full(100, np.nan), np.r_[np.zeros(99), 1.0]],
    ids=["few", "equal", "nothing", "NaN", "one"],
)
def test_where_nothing_can_be_said(log_weights):
    assert np.isnan(pareto_k(log_weights))
