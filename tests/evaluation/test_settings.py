"""Budgets as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.errors import InputError
from meltpoint.evaluation.settings import seconds_of


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [("30m", 1800), ("2h", 7200), ("90s", 90), ("1h30m", 5400), ("1H 30M 5S", 5405), ("45", 45), (2.5, 2.5)],
)
def test_seconds(budget, seconds):
    assert seconds_of(budget) == seconds


@given(st.integers(0, 99), st.integers(0, 59), st.integers(1, 59))
def test_hours_minutes_and_seconds_add_up(hours, minutes, seconds):
    assert seconds_of(f"{hours}h{minutes}m{seconds}s") == 3600 * hours + 60 * minutes + seconds


@pytest.mark.parametrize(
    "budget", ["", "soon", "30 minutes", "m30", "1m1h", "-5m", "0s", 0, -1, True, float("nan"), float("inf")]
)
def test_what_is_no_time(budget):
    with pytest.raises(InputError, match="expected a length of time such as '30m'"):
        seconds_of(budget)
