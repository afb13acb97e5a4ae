from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.estimators.evidence import Evidence
from meltpoint.results.report import Report
from meltpoint.results.stages import OtherBase, StageSummary
from meltpoint.results.verdict import Case, WeightDiagnostics, judge
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate
from results.made import EVIDENCE, SETTINGS, made

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
            "conservative (RAISE, N = 51)  -86.47 ± 0.03",
            "optimistic (AIS)              -86.35 ± 0.02",
            "gap                             0.12 ± 0.03",
            "",
            "Agree: the two estimates are 0.12 nats apart (tolerance 1).",
            "",
            "between      -86.55 and -86.31 with 99% confidence, if no start missed a mode:",
            "             5 starts gave weights",
            "at most      mean log p <= -86.08 with 99% confidence, whatever was missed",
            "certificate  mean log p_N, N = 13, of these 4 examples > -89.16 with 99%",
            "             confidence (estimated: -88.00), whatever the number of steps and",
            "             chains; p_N is the annealing model with N particles",
            "evidence     base uniform and 16 modes (3 weighed): they agree within 0.01 nats",
            "             of log Z; 1,234,000 chain-steps",
            "log Z        451.28 ± 0.02 (> 451.01 with 99% confidence); effective sample",
            "             size 31 of 50 chains, Pareto k 0.31",
            "RAISE        4 examples × 3 chains; with the control variate the error is 7.9 ×",
            "             smaller",
            "path         base data, 10,000 linear steps, mixed precision",
            "run          seed 7, 2 min 13 s (AIS 61 s, RAISE 71 s)",
            "with         meltpoint 0.1.0, numpy 2.0.0, numba 0.61.0, Python 3.11.0",
        ]
    )


def test_one_particle_is_the_paper_s_annealing_model():
    report = made(particles=1, certificate=Certificate(-89.16, 0.99, "mean log p_ann of these 4 examples"))
    assert str(report).splitlines()[2] == "conservative (RAISE)  -86.47 ± 0.03"
    assert row(report, "certificate").endswith("; p_ann is the annealing model")


@pytest.mark.parametrize(
    ("between", "text"),
    [
        ((-86.55, -86.306), "-86.55 and -86.31 with 99% confidence, provided that the chains missed no mode"),
        (
            (-np.inf, -86.306),
            "below -86.31 with 99% confidence, provided that the chains missed no mode; no lower ",
        ),
        ((-np.inf, np.inf), "no interval: two chains and two examples are the least that has an error"),
        ((-86.55, np.inf), "no interval: two chains and two examples are the least that has an error"),
    ],
)
def test_an_interval_without_an_end(between, text):
    assert row(made(between=between, evidence=None), "between").startswith(text)
    shown = text.replace(
        "provided that the chains missed no mode", "if no start missed a mode: 5 starts gave weights"
    )
    assert row(made(between=between), "between").startswith(shown)


def test_what_other_starts_miss_or_that_they_were_not_asked():
    far = replace(EVIDENCE.findings[0], name="modes", lacking=1.0, stderr=0.1, log_weights=())
    report = made(evidence=replace(EVIDENCE, findings=(*EVIDENCE.findings, far)))
    assert row(report, "evidence").startswith(
        "base uniform and 16 modes (3 weighed): 0.69 ± 0.05 nats of log Z are missing (modes); "
    )
    assert "evidence " not in str(made(evidence=None))


@pytest.mark.parametrize(("unweighed", "were"), [(1, "1 mode was"), (4, "4 modes were")])
def test_modes_that_were_not_weighed_are_named(unweighed, were):
    report = made(evidence=replace(EVIDENCE, unweighed=unweighed))
    assert row(report, "between").endswith(f"5 starts gave weights, {were} out of reach and not weighed")
    assert f"16 modes (3 weighed, {unweighed} out of reach and not weighed): " in row(report, "evidence")
    assert "not weighed" in report.to_html()
    near = made(evidence=replace(EVIDENCE, weighed=0))
    assert "16 modes (none out of reach): " in row(near, "evidence")
    assert Report.from_dict(report.to_dict()).evidence == report.evidence


def test_a_bound_that_is_printed_is_certified_and_one_that_is_not_known_is_not_printed():
    assert row(made(upper_bound=-86.0801), "at most").startswith("mean log p <= -86.08 ")
    assert row(made(upper_bound=-86.0799), "at most").startswith("mean log p <= -86.07 ")
    assert "at most" not in str(made(upper_bound=None))


def test_exact_is_said_only_of_what_is_exact():
    report = made(exact=Estimate(-86.4, 0.02, "exact", ""), log_f_exact=False)
    assert str(report).splitlines()[3] == "exact log Z                   -86.40 ± 0.02"


def test_the_stages_and_what_was_asked_for():
    stages = (
        StageSummary(2000, 50, 2, 128, 456_000, -87.5, -86.25, 1.5, 0.8125, 20.0),
        StageSummary(30_000, 100, 1, 1024, 33_720_000, -86.5, -86.375, 0.3, 0.15625, 900.0),
    )
    report = made(stages=stages, gap=Estimate(0.125, 0.03, "difference", ""))
    report = replace(report, settings=replace(report.settings, gap=0.2, budget=600.0))
    assert row(report, "asked") == "within 10 min 0 s, to ± 0.2 nats"
    assert row(report, "stages") == (
        "2,000 steps of 50 × 2 and 128 chains: gap 1.25, within ± 0.81; "
        "30,000 steps of 100 × 1 and 1,024 chains: gap 0.12, within ± 0.16"
    )
    report = replace(report, settings=replace(report.settings, gap=None))
    assert row(report, "asked") == "within 10 min 0 s"


def test_a_budget_that_was_too_small_is_said():
    stage = StageSummary(300, 50, 2, 128, 68_400, -87.5, -86.25, 1.5, 0.8125, 20.0)
    report = made(stages=(stage,), seconds={"total": 20.0})
    small, enough = (replace(report, settings=replace(report.settings, budget=b)) for b in (8.0, 20.0))
    assert row(small, "asked") == (
        "within 8.0 s; that is too little: one small stage and what comes before it took 20 s"
    )
    assert row(enough, "asked") == "within 20 s"
    assert row(replace(small, stages=(stage, stage)), "asked") == "within 8.0 s"
    assert row(replace(small, interrupted=True), "asked") == "within 8.0 s"


@pytest.mark.parametrize(("half_width", "ess"), [(11705.32, 1.0), (0.1, 4.9), (np.inf, 50.0), (0.1, np.nan)])
def test_a_stage_that_few_chains_carry_has_no_accuracy(half_width, ess):
    stage = StageSummary(2000, 50, 2, 128, 456_000, -87.5, -86.25, 1.5, half_width, ess)
    assert stage.within == "accuracy not known"
    assert "accuracy not known" in str(stage)
    assert "accuracy not known" in row(made(stages=(stage,)), "stages")


def test_what_another_base_found_is_said():
    other = OtherBase("data", 620.57, 0.31, -90.87, -90.75, 2.44, 0.23)
    assert row(made(other_base=other), "other base") == (
        "evaluated from base data too, which found less: log Z 620.57 ± 0.31, RAISE -90.87, AIS -90.75; "
        "2.44 ± 0.23 nats are out of its reach"
    )
    silent = replace(other, missing=0.0)
    assert row(made(other_base=silent), "other base").endswith("AIS -90.75")


def test_the_exact_value_stands_between_the_two():
    lines = str(made(exact=Estimate(-86.4, 0.0, "exact", ""))).splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["conservative", "exact", "optimistic", "gap"]
    assert lines[3] == "exact                         -86.40 (exact)"


def test_all_numbers_of_the_bracket_have_the_decimals_of_the_gap():
    lines = str(made(gap=Estimate(0.005, 0.0004, "difference", ""))).splitlines()
    assert {len(line.split(".")[1].split()[0]) for line in lines[2:5]} == {4}


def test_an_interrupted_report_says_how_far_it_came():
    stopped = made(examples=100, interrupted=True)
    assert row(stopped, "interrupted") == "after 4 of 100 examples"
    assert row(stopped, "RAISE").startswith("4 examples × 3 chains")
    stopped = made(examples=100, ais_chains=64, interrupted=True)
    assert row(stopped, "interrupted") == "after 50 of 64 AIS chains and 4 of 100 examples"
    assert "interrupted" not in str(made())


def test_an_estimated_log_f_is_mentioned():
    assert "± 0.012" in row(made(log_f_error=0.0123, log_f_exact=False), "log f")
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
    for one in ("on 1 test example,", "1 linear step,", "× 1 chain\n", "of 1 chain,"):
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
        verdict=judge(Case(gap, WeightDiagnostics(ess, asked["ais_chains"]), 1.0)),
        ess=ess,
        certificate=Certificate(gap.value, 0.99, "mean log p_N, N = 1,234, of these 4 examples"),
        certified_estimate=gap.value,
        between=(conservative.value, optimistic.value),
        particles=asked["ais_chains"] + 1,
        seconds={"AIS": seconds, "RAISE": seconds, "total": 2 * seconds},
        **asked,
    )
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not any(line != line.rstrip() for line in lines)


def test_every_setting_is_shown():
    values = {"base": "BASE", "schedule": "SCHEDULE", "precision": "PRECISION", "steps": 31415}
    values |= {"chains": 27182, "ais_chains": 16180, "seed": 57721, "tolerance": 0.6931, "examples": 14142}
    assert {field.name for field in fields(SETTINGS)} - set(values) == {
        "confidence",
        "gap",
        "budget",
        "particles",
        "exact",
        "evidence",
    }
    report = made(**values, interrupted=True)  # one that is not says what was done
    report = replace(
        report,
        verdict=judge(
            Case(report.gap, WeightDiagnostics(31.4, 50), values["tolerance"], evidence=Evidence())
        ),
    )
    text = str(report).replace(",", "")
    assert [value for value in values.values() if str(value) not in text] == []
