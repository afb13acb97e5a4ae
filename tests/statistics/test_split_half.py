"""Halves of independent chains are a few standard errors apart at most; a chain apart from the rest shows."""

import numpy as np
import pytest

from meltpoint.statistics.diagnostics import split_half_distance, split_half_mean_distance


def test_independent_chains_differ_as_a_normal_variable_does():
    rng = np.random.default_rng(0)
    apart = np.array([split_half_distance(rng.normal(0, 0.3, 200)) for _ in range(400)])
    apart_mean = np.array([split_half_mean_distance(rng.normal(0, 0.3, (100, 5))) for _ in range(400)])
    for found in (apart, apart_mean):
        # The second moment of a normal variable is 1 ± sqrt(2 / 400); five of those.
        assert np.mean(found**2) == pytest.approx(1, abs=5 * np.sqrt(2 / 400) + 0.05)


def test_a_drift_is_seen():
    rng = np.random.default_rng(0)
    assert split_half_distance(rng.normal(0, 0.1, 200) + np.repeat([0.0, 0.3], 100)) > 10
    assert split_half_mean_distance(rng.normal(0, 0.1, (50, 4)) + np.array([0.0, 0.0, 0.3, 0.3])) > 10


@pytest.mark.parametrize("weights", [np.zeros(3), np.array([0.0, 0.0, 1.0, 1.0])])
def test_too_few_or_too_equal(weights):
    assert np.isnan(split_half_distance(weights))


def test_equal_weights_are_not_apart():
    assert split_half_distance(np.zeros(10)) == 0
    assert split_half_mean_distance(np.zeros((5, 2))) == 0
    assert np.isnan(split_half_mean_distance(np.zeros((5, 1))))
    assert np.isnan(split_half_mean_distance(np.zeros((1, 4))))
