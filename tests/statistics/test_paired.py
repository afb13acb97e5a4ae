"""Differences of estimates that share random numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.statistics.log_space import log_mean_error
from meltpoint.statistics.paired import (
    Limits,
    believed_correlation,
    limits_of_difference,
    paired_log_mean_error,
)

sizes = st.floats(0, 5)


@st.composite
def limits(draw):
    """Limits that are not reversed, with a certificate in place of noise now and then."""
    value, above, below = draw(st.floats(-50, 50)), draw(sizes), draw(sizes)
    rest_above, rest_below = draw(sizes), draw(sizes)
    if draw(st.booleans()):
        return Limits(value, (0.0, above + below), (-draw(st.floats(0, above)), rest_below))
    return Limits(value, (above, below), (rest_above, rest_below))


@given(limits(), limits(), st.floats(-1, 1))
def test_never_wider_than_two_separate_intervals_and_never_reversed(one, other, correlation):
    low, high = limits_of_difference(one, other, correlation)
    assert low >= one.low - other.high - 1e-9
    assert high <= one.high - other.low + 1e-9
    assert low <= high + 1e-9


@given(limits(), limits(), st.floats(-1, 1), sizes)
def test_the_other_way_round_is_the_negative(one, other, correlation, more):
    low, high = limits_of_difference(one, other, correlation, more)
    assert limits_of_difference(other, one, correlation, more) == pytest.approx((-high, -low))


def test_ends_that_are_not_known_stay_unknown():
    unknown = Limits(1.0, rest=(0.5, math.inf))
    assert limits_of_difference(unknown, Limits(0.0, (0.1, 0.1))) == (-math.inf, pytest.approx(1.6))
    assert limits_of_difference(Limits(0.0), unknown)[1] == math.inf


@pytest.mark.parametrize("correlation", [-0.7, 0.0, 0.9])
def test_normal_noise_is_covered_as_promised(correlation):
    """20,000 pairs of limits at 2.5 % a side miss 5 %, within 6 standard deviations: a false alarm in 1e9 runs."""
    rng = np.random.default_rng(1)
    noise = rng.multivariate_normal([0, 0], [[1, 2 * correlation], [2 * correlation, 4]], 20_000)

    def missed(believed: float, forgotten: float = 1.0) -> int:
        return sum(
            not low <= 0 <= high
            for low, high in (
                limits_of_difference(
                    Limits(a, (1.96, 1.96)), Limits(b, (3.92 * forgotten, 3.92 * forgotten)), believed
                )
                for a, b in noise
            )
        )

    expected, deviation = 1000, math.sqrt(20_000 * 0.05 * 0.95)
    assert abs(missed(correlation) - expected) < 6 * deviation
    # mutants: the second model's noise left out, correlation of the wrong sign
    assert missed(correlation, 0.0) > expected + 6 * deviation
    if correlation:
        assert abs(missed(-correlation) - expected) > 6 * deviation


def test_paired_error_is_that_of_the_difference_chain_by_chain():
    rng = np.random.default_rng(2)
    shared = rng.normal(0, 0.3, (4000, 50))
    one = shared + rng.normal(0, 0.05, shared.shape)
    other = shared + rng.normal(0, 0.05, shared.shape)
    differences = np.log(np.exp(one).mean(axis=1)) - np.log(np.exp(other).mean(axis=1))
    errors = paired_log_mean_error(one, other)
    # the spread of 4,000 differences is known to 1.1 %; 8 % is 7 standard deviations
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.std(differences), rel=0.08)
    assert np.all(errors < 0.5 * np.hypot(log_mean_error(one), log_mean_error(other)))


def test_without_pairs_the_errors_add_up():
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=20), rng.normal(size=30)
    assert paired_log_mean_error(one, other) == pytest.approx(log_mean_error(one) + log_mean_error(other))
    assert believed_correlation(one, other) == -1.0


def test_correlation_is_believed_where_it_is_sure():
    rng = np.random.default_rng(4)
    one, other = rng.normal(0, 0.5, (2, 400))
    assert believed_correlation(one, one + 3.0) == 1.0
    assert believed_correlation(np.zeros(400), other) == 0.0
    # independent chains: 2.5 standard deviations are exceeded in 1 of 160 cases, and here by a fixed seed
    assert -0.3 < believed_correlation(one, other) <= 0.0
    near = believed_correlation(one, one + 0.2 * other)
    assert 0.7 < near < np.corrcoef(np.exp(one), np.exp(one + 0.2 * other))[0, 1]
    assert believed_correlation(one[:8], one[:8]) == 0.0  # too few chains to believe it
