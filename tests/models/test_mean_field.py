"""Mean fields that proposals are made of, against those in float64."""

import itertools

import numpy as np
import pytest

from meltpoint.models import dbm
from meltpoint.models.dbm import DBM


def make_model(sizes, seed=0):
    rng = np.random.default_rng(seed)
    weights = [rng.normal(0, 1.5 / np.sqrt(sum(shape)), shape) for shape in itertools.pairwise(sizes)]
    return DBM(weights, [rng.normal(0, 0.5, size) for size in sizes])


def settle(model, x):
    even, odd = model.mean_field(x, tolerance=dbm._TOLERANCE, dtype=np.float32)
    return even[:, model.n_visible :], odd


@pytest.mark.parametrize("sizes", [(9, 5, 4), (20, 30, 25, 12), (7, 6, 5, 4, 3)])
def test_rates_are_near_the_fixed_point(sizes):
    model = make_model(sizes)
    x = np.random.default_rng(1).integers(0, 2, (150, sizes[0]), np.uint8)
    hidden, odd = settle(model, x)
    even, expected_odd = model.mean_field(x, tolerance=1e-12)
    # The last sweep changed no even rate by more than 1e-3; on these models that leaves less than three times as much.
    np.testing.assert_allclose(hidden, even[:, sizes[0] :], rtol=0, atol=3e-3)
    np.testing.assert_allclose(odd, expected_odd, rtol=0, atol=3e-3)
    bounds = [
        model.mrf.mean_field_bound(*rates, model.n_visible)
        for rates in ((np.hstack([x, hidden]), odd), (even, expected_odd))
    ]
    np.testing.assert_allclose(*bounds, rtol=0, atol=1e-4)


def test_examples_do_not_depend_on_their_neighbours():
    model = make_model((40, 33, 70))
    x = np.random.default_rng(2).integers(0, 2, (200, 40), np.uint8)
    together = settle(model, x)
    for part in (slice(0, 1), slice(3, 70), slice(130, 200)):
        for found, expected in zip(settle(model, x[part]), together, strict=True):
            np.testing.assert_array_equal(found, expected[part])


def test_visible_units_that_are_left_out_are_noticed():
    # The mutant: rates without the visible units' share of the inputs.
    model = make_model((9, 5, 4))
    x = np.ones((3, 9), np.uint8)
    even, _ = model.mean_field(x)
    assert np.abs(settle(model, np.zeros_like(x))[0] - even[:, 9:]).max() > 3e-3
