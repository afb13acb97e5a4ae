from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.report.verdict import Signs, judge
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate
from report.made import SETTINGS, made

WIDTH = 79


def row(report, label):
    """The text of one labelled row, its lines joined."""
    lines = str(report).splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.startswith(f"{label} ")]
    text = [lines[start].removeprefix(label).strip()]
    for line in lines[start + 1 :]:
        if not line.startswith("  "):
            break
        text.append(line.strip())
    return " ".join(text)


def test_a_whole_report():
    assert str(made()) == "\n".join(
        [
            "RBM 784-500 on 10,000 test examples, nats per example",
            "─" * WIDTH,
            "conservative (RAISE)      -86.47 ± 0.03",
            "optimistic (AIS)          -86.35 ± 0.02",
            "gap                         0.12 ± 0.03",
            "",
            "Agree: the two estimates are 0.12 nats apart (tolerance 1).",
            "",
            "between               -86.55 and -86.31 with 99% confidence, as far as errors",
            "                      are normal",
            "certificate           mean log p_ann of these 4 examples > -89.16 with 99%",
            "                      confidence (estimated: -88.00), whatever the number of",
            "                      steps and chains; p_ann is the annealing model",
            "log Z                 451.28 ± 0.02 (> 451.01 with 99% confidence); effective",
            "                      sample size 31 of 50 chains, Pareto k 0.31",
            "path                  base data, 10,000 linear steps, mixed precision",
            "RAISE                 4 examples × 3 chains; with the control variate the error",
            "                      is 7.9 × smaller",
            "run                   seed 7, 2 min 13 s (AIS 61 s, RAISE 71 s)",
            "with                  meltpoint 0.1.0, numpy 2.0.0, numba 0.61.0, Python 3.11.0",
        ]
    )


def test_the_exact_value_stands_between_the_two():
    lines = str(made(exact=Estimate(-86.4, 0.0, "exact", ""))).splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["conservative", "exact", "optimistic", "gap"]
    assert lines[3] == "exact                     -86.40 (exact)"


def test_all_numbers_of_the_bracket_have_the_decimals_of_the_gap():
    lines = str(made(gap=Estimate(0.005, 0.0004, "difference", ""))).splitlines()
    assert {len(line.split(".")[1].split()[0]) for line in lines[2:5]} == {4}


def test_an_interrupted_report_says_how_far_it_came():
    assert row(made(examples=100), "interrupted") == "after 4 of 100 examples"
    assert row(made(examples=100), "RAISE").startswith("4 examples × 3 chains")
    assert "interrupted" not in str(made())


def test_an_estimated_log_f_is_mentioned():
    assert "± 0.012" in row(made(log_f_error=0.0123), "log f")
    assert "log f" not in str(made())


@pytest.mark.parametrize(
    ("gain", "population", "text"),
    [
        (8.04, 10_000, "4 examples × 3 chains; with the control variate the error is 8.0 × smaller"),
        (0.5, 10_000, "4 examples × 3 chains; with the control variate the error is 2.0 × larger"),
        (8.04, 4, "4 examples × 3 chains"),
        (np.nan, 10_000, "4 examples × 3 chains"),
        (0.0, 10_000, "4 examples × 3 chains"),
        (np.inf, 10_000, "4 examples × 3 chains"),
    ],
)
def test_the_gain_of_the_control_variate_is_shown_where_there_is_one(gain, population, text):
    assert row(made(control_variate_gain=gain, test_examples=population), "RAISE") == text


def test_one_of_a_thing_is_singular():
    text = str(made(test_examples=1, steps=1, chains=1, ais_chains=1))
    for one in ("on 1 test example,", "1 linear step,", "× 1 chain;", "of 1 chain,"):
        assert one in text


def test_numbers_keep_their_units_at_the_end_of_a_line():
    for extra in range(60):
        seconds = {"x" * extra: 15.0, "RAISE": 15.0, "total": 30.0}
        assert not any(line.endswith(("RAISE", "15")) for line in str(made(seconds=seconds)).splitlines())


numbers = st.floats(allow_nan=True, allow_infinity=True)
estimates = st.builds(Estimate, numbers, numbers.map(abs), st.just("difference"), st.just(""))
counts = st.integers(1, 10**12)


@given(
    st.tuples(estimates, estimates, estimates, st.none() | estimates),
    st.lists(counts, min_size=2, max_size=30),
    numbers.map(abs),
    st.floats(0, 1e9),
    st.fixed_dictionaries(dict.fromkeys(("steps", "chains", "ais_chains", "seed"), counts)),
)
def test_every_report_fits_a_terminal(bracket, layers, ess, seconds, asked):
    conservative, optimistic, gap, exact = bracket
    report = made(
        model="DBM " + "-".join(map(str, layers)),
        conservative=conservative,
        optimistic=optimistic,
        gap=gap,
        exact=exact,
        verdict=judge(gap, Signs(ess, asked["ais_chains"]), 1.0),
        ess=ess,
        certificate=Certificate(gap.value, 0.99, "mean log p_ann of these 4 examples"),
        seconds={"AIS": seconds, "RAISE": seconds, "total": 2 * seconds},
        **asked,
    )
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not any(line != line.rstrip() for line in lines)


def test_every_setting_is_shown():
    values = {"base": "BASE", "schedule": "SCHEDULE", "precision": "PRECISION", "steps": 31415}
    values |= {"chains": 27182, "ais_chains": 16180, "seed": 57721, "tolerance": 0.6931, "examples": 14142}
    assert {field.name for field in fields(SETTINGS)} - set(values) == {"confidence", "gap", "budget"}
    report = made(**values)
    report = replace(report, verdict=judge(report.gap, Signs(31.4, 50), values["tolerance"]))
    text = str(report).replace(",", "")
    assert [value for value in values.values() if str(value) not in text] == []
