"""How an estimate prints: no error is hidden, no digit invented."""

import json
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm, t

from meltpoint.statistics.estimate import Estimate, combined_error

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
        (0.0, "exact", "-86.3512 (exact)"),
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


positive = st.floats(1e-6, 1e6)
freedoms = st.floats(0.5, 1e6) | st.just(math.inf)
parts = st.lists(st.tuples(positive, freedoms), min_size=1, max_size=5)


@given(positive, st.floats(0.01, 1e6), st.floats(1e-6, 0.499))
def test_a_margin_is_a_quantile_of_student_s_t(stderr, df, alpha) -> None:
    """Below one degree of freedom the quantiles of one are taken: those of a hundredth are beyond any number."""
    margin = Estimate(-3.0, stderr, "optimistic", "", df=df).margin(alpha)
    assert margin == pytest.approx(stderr * t.isf(alpha, max(1.0, df)), rel=1e-6)
    normal = Estimate(-3.0, stderr, "optimistic", "").margin(alpha)
    assert normal == pytest.approx(stderr * norm.isf(alpha), rel=1e-6)
    assert margin >= normal * (1 - 1e-9)


@given(st.floats(), st.floats(), st.floats(), st.floats(1e-6, 0.499))
def test_a_margin_is_never_negative_nor_nan(value, stderr, df, alpha) -> None:
    margin = Estimate(value, abs(stderr), "optimistic", "", df=df).margin(alpha)
    assert margin >= 0
    if not math.isfinite(stderr) or not df > 0:
        assert margin == math.inf


@given(parts)
def test_errors_of_independent_parts_combine(given_parts) -> None:
    error, df = combined_error(*given_parts)
    assert error == pytest.approx(math.sqrt(sum(e**2 for e, _ in given_parts)), rel=1e-9)
    # Between the least sure of them and all of them together.
    assert df >= min(d for _, d in given_parts) * (1 - 1e-9)
    assert df <= sum(d for _, d in given_parts) * (1 + 1e-9)
    turned = combined_error(*reversed(given_parts))
    assert (error, df) == pytest.approx(turned, rel=1e-9)


@given(parts, freedoms)
def test_a_part_without_an_error_counts_for_nothing(given_parts, df) -> None:
    assert combined_error(*given_parts, (0.0, df)) == combined_error(*given_parts)
    assert combined_error((0.0, df)) == (0.0, math.inf)


@given(parts, st.sampled_from([math.nan, math.inf]))
def test_a_part_that_is_unknown_makes_the_sum_unknown(given_parts, unknown) -> None:
    error, _ = combined_error(*given_parts, (unknown, 5.0))
    assert math.isnan(error)
    assert Estimate(0.0, error, "optimistic", "").margin(0.01) == math.inf


def test_degrees_of_freedom_are_welch_s() -> None:
    # Two samples of 10 and 16 with variances of their means of 4 and 1: 25 / (16/9 + 1/15).
    error, df = combined_error((2.0, 9.0), (1.0, 15.0))
    assert (error, df) == pytest.approx((math.sqrt(5), 25 / (16 / 9 + 1 / 15)))
    assert combined_error((3.0, 0.0))[1] == 0.0  # an error from nothing
