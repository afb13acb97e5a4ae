"""Schedules: numbers of steps become betas, and betas that cannot be walked are turned away."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.annealing.schedule import as_betas
from meltpoint.errors import InputError


@given(st.integers(1, 3000))
def test_a_number_of_steps_is_that_many_equal_intervals(steps) -> None:
    betas = as_betas(steps)
    assert betas.size == steps + 1
    assert betas[0] == 0
    assert betas[-1] == 1
    np.testing.assert_allclose(np.diff(betas), 1 / steps, rtol=1e-9)


@given(st.sets(st.floats(0, 1, exclude_min=True, exclude_max=True), max_size=20))
def test_increasing_betas_are_taken_as_they_are(inside) -> None:
    betas = [0.0, *sorted(inside), 1.0]
    given_betas = np.array(betas)
    found = as_betas(given_betas)
    assert found.tolist() == betas
    assert not np.shares_memory(found, given_betas)
    assert as_betas(betas).tolist() == betas


BAD = {
    "no steps": (0, "found steps=0, expected a whole number from 1 on.*an array"),
    "negative steps": (-3, "found steps=-3"),
    "half a step": (2.5, "found steps=2.5"),
    "a flag": (True, "found steps=True"),
    "a word": ("many", "found steps='many'"),
    "one beta": ([0.0], r"betas of shape \(1,\), expected a vector of at least two"),
    "a matrix": ([[0.0, 1.0]], r"betas of shape \(1, 2\)"),
    "NaN": ([0.0, np.nan, 1.0], "with NaN or infinity"),
    "not from 0": ([0.1, 1.0], "betas from 0.1 to 1, expected betas from 0 to 1"),
    "not to 1": ([0.0, 0.9], "betas from 0 to 0.9"),
    "backwards": ([1.0, 0.0], "betas from 1 to 0"),
    "a repetition": ([0.0, 0.5, 0.5, 1.0], r"do not increase at position 2 \(0.5, then 0.5\)"),
    "a dip": ([0.0, 0.7, 0.2, 1.0], r"position 2 \(0.7, then 0.2\).* np.unique"),
    "beyond 1": ([0.0, 1.5, 1.0], r"do not increase at position 2 \(1.5, then 1\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_schedules(case) -> None:
    steps, message = BAD[case]
    with pytest.raises(InputError, match=message):
        as_betas(steps)
