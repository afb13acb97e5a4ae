"""Probabilities and draws of units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.special import expit

from meltpoint.kernels.draws import draw_bits, draw_counts
from meltpoint.kernels.sigmoid import sigmoid_
from meltpoint.training.phases import random_stream

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(("kind", "digits"), [(np.float32, 2e-7), (np.float64, 1e-15)])
@given(values=hnp.arrays(np.float64, (2, 3), elements=st.floats(-80, 80)))
@settings(deadline=None)
def test_switching_on_is_the_logistic_function(kind, digits, values):
    field, bias = values.astype(kind), np.array([0.0, 1.0, -2.0], kind)
    expected = expit(field.astype(np.float64) + bias)
    sigmoid_(field, bias)
    np.testing.assert_allclose(field, expected, rtol=0, atol=digits)


def test_extreme_inputs_stay_probabilities():
    field = np.array([[-1e30, 1e30, -100, 100]], np.float32)
    sigmoid_(field, np.zeros(4, np.float32))
    assert field[0, 0] < 1e-37
    assert field[0, 1] == 1
    assert (field >= 0).all()


@pytest.mark.parametrize(("drawing", "copies"), [(draw_bits, 1), (draw_counts, 2)])
def test_draws_have_the_right_distribution(drawing, copies):
    rates = np.array([0.0, 1e-4, 0.1, 0.5, 0.9, 1.0], np.float32)
    n = 200_000
    out = np.empty((n, rates.size), np.uint8)
    drawing(np.tile(rates, (n, 1)), random_stream(7, 0), out)
    for unit, rate in enumerate(rates.astype(float)):
        observed = np.bincount(out[:, unit], minlength=copies + 1)
        expected = n * stats.binom.pmf(np.arange(copies + 1), copies, rate)
        assert (observed[expected == 0] == 0).all()
        kept = expected > 0
        if kept.sum() > 1:
            assert stats.chisquare(observed[kept], expected[kept]).pvalue > FALSE_ALARM / rates.size


def test_a_wrong_rate_would_be_noticed():
    # The mutant beside the test above.
    n = 200_000
    out = np.empty((n, 1), np.uint8)
    draw_bits(np.full((n, 1), 0.51, np.float32), random_stream(7, 0), out)
    assert stats.binomtest(int(out.sum()), n, 0.5).pvalue < FALSE_ALARM


def test_streams_belong_to_their_key():
    assert np.array_equal(random_stream(1, 2, 3), random_stream(1, 2, 3))
    assert not np.array_equal(random_stream(1, 2, 3), random_stream(1, 2, 4))
    assert not np.array_equal(random_stream(1, 2, 3), random_stream(2, 2, 3))


def test_draws_of_one_stream_differ_from_row_to_row():
    out = np.empty((50, 64), np.uint8)
    draw_bits(np.full((50, 64), 0.5, np.float32), random_stream(0), out)
    assert len(np.unique(out, axis=0)) == 50
