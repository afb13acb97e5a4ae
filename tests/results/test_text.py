from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.estimators.evidence import Evidence
from meltpoint.results.citation import latex_line, paper_sentence
from meltpoint.results.report import Report
from meltpoint.results.stages import OtherBase, StageSummary
from meltpoint.results.verdict import Case, Verdict, judge
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate
from results.made import EVIDENCE, SETTINGS, made

WIDTH = 79


def row(report, label):
    """The text of one labelled row, its lines joined, of which one may end in a hyphen."""
    lines = str(report).splitlines()
    (start,) = [i for i, line in enumerate(lines) if line.startswith(f"{label} ")]
    text = [lines[start].removeprefix(label).strip()]
    for line in lines[start + 1 :]:
        if not line.startswith("  "):
            break
        text.append(line.strip())
    return " ".join(text).replace("chain- ", "chain-")


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
            "             2 bases and 3 groups of modes gave weights",
            "at most      mean log p <= -86.08 with 99% confidence, whatever was missed",
            "certificate  mean log p_N, N = 13, of these 4 examples > -89.16 with 99%",
            "             confidence (estimated: -88.00), whatever the number of steps and",
            "             chains; p_N is the annealing model with N particles",
            "evidence     base uniform (log Z 451.20 ± 0.20, a lower bound) and 16 modes (5",
            "             out of reach, weighed in 3 groups): the states found from there,",
            "             melted back, show no more than 0.01 nats of log Z missing;",
            "             1,234,000 chain-steps",
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


NO_MODE = "provided that the chains missed no mode"
WEIGHED = "if no start missed a mode: 2 bases and 3 groups of modes gave weights"
NO_INTERVAL = "no interval: two chains and two examples are the least that has an error"
SMALL = StageSummary(300, 50, 2, 128, 68_400, -87.5, -86.25, 1.5, 0.8125, 20.0)
LARGE = StageSummary(30_000, 100, 1, 1024, 33_720_000, -86.5, -86.375, 0.3, 0.15625, 900.0)
FEW = replace(SMALL, ess=4.9)
OTHER = OtherBase("data", 620.57, 0.31, -90.87, -90.75, 2.44, 0.23)
FAR = replace(EVIDENCE.findings[0], name="modes", lacking=1.0, stderr=0.1, log_weights=())
TOO_LITTLE = "that is too little: one small stage and what comes before it took 20 s"
GAINS = "4 examples × 3 chains; with the control variate the error is"


def stages(*each, **changes):
    return {"stages": each, "seconds": {"total": 20.0}, "budget": 20.0} | changes


@pytest.mark.parametrize(
    ("changes", "label", "text"),
    [
        ({"evidence": None}, "between", f"-86.55 and -86.31 with 99% confidence, {NO_MODE}"),
        ({}, "between", f"-86.55 and -86.31 with 99% confidence, {WEIGHED}"),
        (
            {"between": (-np.inf, -86.306)},
            "between",
            f"below -86.31 with 99% confidence, {WEIGHED}; no lower end is known",
        ),
        ({"between": (-np.inf, np.inf)}, "between", NO_INTERVAL),
        ({"between": (-86.55, np.inf), "evidence": None}, "between", NO_INTERVAL),
        ({"evidence": None}, "evidence", None),
        (
            {"evidence": replace(EVIDENCE, findings=(*EVIDENCE.findings, FAR))},
            "evidence",
            "base uniform (log Z 451.20 ± 0.20, a lower bound) and 16 modes (5 out of reach, weighed in 3 "
            "groups): 0.69 ± 0.05 nats of log Z are missing (modes); 1,234,000 chain-steps",
        ),
        # What is printed is certified too: bounds are rounded to their safe side.
        (
            {"upper_bound": -86.0801},
            "at most",
            "mean log p <= -86.08 with 99% confidence, whatever was missed",
        ),
        (
            {"upper_bound": -86.0799},
            "at most",
            "mean log p <= -86.07 with 99% confidence, whatever was missed",
        ),
        ({"upper_bound": None}, "at most", None),
        (
            {"log_f_error": 0.0123, "log_f_exact": False},
            "log f",
            "estimated too, ± 0.012: AIS rests on two estimates",
        ),
        ({}, "log f", None),
        ({}, "interrupted", None),
        ({"examples": 100, "interrupted": True}, "interrupted", "after 4 of 100 examples"),
        (
            {"examples": 100, "ais_chains": 64, "interrupted": True},
            "interrupted",
            "after 50 of 64 AIS chains and 4 of 100 examples",
        ),
        ({}, "asked", None),
        (stages(SMALL), "asked", "within 20 s"),
        (stages(SMALL, budget=8.0), "asked", f"within 8.0 s; {TOO_LITTLE}"),
        (stages(SMALL, SMALL, budget=8.0), "asked", "within 8.0 s"),
        (stages(SMALL, budget=8.0, interrupted=True), "asked", "within 8.0 s"),
        (
            stages(SMALL, LARGE),
            "stages",
            "300 steps of 50 × 2 and 128 chains: gap 1.25, within ± 0.81; "
            "30,000 steps of 100 × 1 and 1,024 chains: gap 0.12, within ± 0.16",
        ),
        (stages(FEW), "stages", "300 steps of 50 × 2 and 128 chains: gap 1.25, accuracy unknown"),
        (
            {"other_base": OTHER},
            "other base",
            "evaluated from base data too, which found less: log Z 620.57 ± 0.31, RAISE -90.87, AIS -90.75; "
            "2.44 ± 0.23 nats are out of its reach",
        ),
        (
            {"other_base": replace(OTHER, missing=0.0)},
            "other base",
            "evaluated from base data too, which found less: log Z 620.57 ± 0.31, RAISE -90.87, AIS -90.75",
        ),
        ({"control_variate_gain": 8.04}, "RAISE", f"{GAINS} 8.0 × smaller"),
        ({"control_variate_gain": 0.5}, "RAISE", f"{GAINS} 2.0 × larger"),
        ({"control_variate_gain": 8.04, "test_examples": 4}, "RAISE", "4 examples × 3 chains"),
        *(
            ({"control_variate_gain": gain}, "RAISE", "4 examples × 3 chains")
            for gain in (np.nan, 0.0, np.inf)
        ),
    ],
)
def test_a_row_says_what_the_report_has(changes, label, text):
    report = made(**changes)
    if text is None:
        assert f"\n{label} " not in str(report)
    else:
        assert row(report, label) == text


def test_what_was_asked_for_has_its_gap():
    report = made(**stages(SMALL, budget=600.0))
    report = replace(report, settings=replace(report.settings, gap=0.2))
    assert row(report, "asked") == "within 10 min 0 s, to ± 0.2 nats"


@pytest.mark.parametrize(("half_width", "ess"), [(11705.32, 1.0), (0.1, 4.9), (np.inf, 50.0), (0.1, np.nan)])
def test_a_stage_that_few_chains_carry_has_no_accuracy(half_width, ess):
    stage = replace(SMALL, half_width=half_width, ess=ess)
    assert stage.within == "accuracy unknown"
    assert "accuracy unknown" in str(stage)


@pytest.mark.parametrize(("unweighed", "modes"), [(1, "1 mode"), (4, "4 modes")])
def test_modes_of_unknown_weight_are_named(unweighed, modes):
    report = made(evidence=replace(EVIDENCE, far=7, unweighed=unweighed))
    said = f"2 bases and 3 groups of modes gave weights; the weight of {modes} out of reach is unknown"
    assert row(report, "between").endswith(said)
    said = f"16 modes (7 out of reach, weighed in 3 groups; the weight of {unweighed} is unknown): "
    assert said in row(report, "evidence")
    near = made(evidence=replace(EVIDENCE, far=0, weighed=0))
    assert "16 modes (none out of reach): " in row(near, "evidence")
    assert Report.from_dict(report.to_dict()).evidence == report.evidence


@pytest.mark.parametrize(
    ("log_f_exact", "stderr", "shown"),
    [
        (True, 0.0, "exact                         -86.4000 (exact)"),
        (False, 0.02, "exact log Z                   -86.40 ± 0.02"),
    ],
)
def test_the_exact_value_stands_between_the_two_and_is_called_what_it_is(log_f_exact, stderr, shown):
    lines = str(made(exact=Estimate(-86.4, stderr, "exact", ""), log_f_exact=log_f_exact)).splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["conservative", "exact", "optimistic", "gap"]
    assert lines[3] == shown


def test_the_exact_value_is_the_answer_whatever_the_estimates_say():
    heavy = Verdict("heavy", False, "Heavy tails: they are heavy. Raise steps.", "Raise steps.")
    report = made(verdict=heavy, exact=Estimate(-86.4, 0.0, "exact", ""))
    assert report.trusted
    assert report.to_dict()["trusted"]
    said = " ".join(str(report).split())
    assert "mean of log p is -86.4000. The estimates alone: Heavy tails: they are heavy. between" in said
    assert paper_sentence(report).endswith("is -86.4000 nats: log Z was computed exactly by meltpoint 0.1.0.")
    assert latex_line(report).endswith(r"& $-86.4000$ \\")
    assert not made(verdict=heavy, exact=Estimate(-86.4, 0.02, "exact", ""), log_f_exact=False).trusted


def test_all_numbers_of_the_bracket_have_the_decimals_of_the_gap():
    lines = str(made(gap=Estimate(0.005, 0.0004, "difference", ""))).splitlines()
    assert {len(line.split(".")[1].split()[0]) for line in lines[2:5]} == {4}


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
        verdict=judge(Case(gap, ess, asked["ais_chains"], 1.0)),
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
        verdict=judge(Case(report.gap, 31.4, 50, values["tolerance"], evidence=Evidence())),
    )
    text = str(report).replace(",", "")
    assert [value for value in values.values() if str(value) not in text] == []


def test_names_are_escaped_for_latex():
    line = latex_line(made(names={"model": "model_1 {50%}~\\x1b"}))
    assert line.startswith(r"model\_1 \{50\%\}\textasciitilde{}\textbackslash{}")
