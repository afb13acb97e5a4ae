import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.progress import duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (9.949, "9.9 s"),
        (9.951, "10 s"),
        (119.4, "119 s"),
        (119.6, "2 min 0 s"),
        (3599.6, "1 h 0 min"),
        (90061, "25 h 1 min"),
    ],
)
def test_two_units_at_most(seconds, text):
    assert duration(seconds) == text


@given(st.floats(0, 1e7))
def test_never_sixty_of_a_unit(seconds):
    assert "60 min" not in duration(seconds)
    assert " 60 s" not in duration(seconds)
