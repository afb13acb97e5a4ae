"""How an estimate prints: no error is hidden, no digit invented."""

import json
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from meltpoint.statistics.estimate import Estimate

values = st.floats(-1e6, 1e6)
errors = st.floats(0, 1e6)


def estimate(value: float, stderr: float, direction: str = "optimistic") -> Estimate:
    return Estimate(value, stderr, direction, "noise")


@given(values, st.floats(allow_nan=True, allow_infinity=True))
@example(-86.4, 0.0)
@example(-86.4, 5e-324)
@example(-86.4, 4.9999e-5)
@example(-86.4, 5e-5)
@example(-86.4, -0.0)
def test_never_plus_minus_zero(value, stderr) -> None:
    shown = str(estimate(value, stderr))
    assert not re.search(r"± [0.]+(?!\S)", shown)
    if "±" not in shown:
        assert "(error unknown)" in shown or "(error below rounding)" in shown


@given(values, errors.filter(lambda e: e > 0))
def test_printed_numbers_are_the_numbers(value, stderr) -> None:
    shown = str(estimate(value, stderr))
    number, error = shown.split(" ± ")
    decimals = len(number.split(".")[1])
    half_unit = 0.5 * 10.0**-decimals * (1 + 1e-6)
    assert 2 <= decimals <= 4
    assert abs(float(number) - value) <= half_unit
    if error.startswith("<"):
        assert stderr < float(error[1:]) == 10.0**-decimals
    else:
        assert len(error.split(".")[1]) == decimals
        assert abs(float(error) - stderr) <= half_unit


@given(values, errors)
def test_never_minus_zero(value, stderr) -> None:
    assert not re.match(r"-0\.0+ ", str(estimate(value, stderr)))


@pytest.mark.parametrize(
    ("stderr", "direction", "shown"),
    [
        (0.0123, "optimistic", "-86.35 ± 0.01"),
        (1.26, "optimistic", "-86.35 ± 1.26"),
        (0.004, "conservative", "-86.351 ± 0.004"),
        (0.0004, "conservative", "-86.3512 ± 0.0004"),
        (0.00004, "conservative", "-86.3512 ± <0.0001"),
        (0.0, "exact", "-86.35 (exact)"),
        (0.0, "optimistic", "-86.35 (error below rounding)"),
        (math.nan, "optimistic", "-86.35 (error unknown)"),
        (math.inf, "optimistic", "-86.35 (error unknown)"),
    ],
)
def test_examples(stderr, direction, shown) -> None:
    assert str(estimate(-86.35123, stderr, direction)) == shown


@given(st.floats(), st.floats())
def test_dictionary_is_json(value, stderr) -> None:
    back = json.loads(json.dumps(estimate(value, stderr).to_dict(), allow_nan=False))
    assert back["value"] == (value if math.isfinite(value) else None)
    assert back["stderr"] == (stderr if math.isfinite(stderr) else None)
    assert (back["direction"], back["covers"]) == ("optimistic", "noise")


@given(st.floats(), st.floats())
def test_any_number_prints_on_one_short_line(value, stderr) -> None:
    assert len(str(estimate(value, stderr))) < 50
