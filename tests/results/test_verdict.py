import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meltpoint.estimators.evidence import Evidence, Finding
from meltpoint.results.verdict import Case, Needed, judge, judge_target
from meltpoint.statistics.estimate import Estimate


def verdict(gap, error, *, ess=100.0, chains=400, k=math.nan, apart=math.nan, **case):
    case = {"tolerance": 1.0, "evidence": Evidence(), "pareto_k": k, "apart": apart} | case
    return judge(Case(Estimate(gap, error, "difference", ""), ess, chains, **case))


@pytest.mark.parametrize(
    ("gap", "error", "ess", "reason"),
    [
        (0.0, 0.0, 400.0, "agree"),  # all weights equal
        (0.3, 0.1, 100.0, "agree"),
        (1.0, 0.1, 100.0, "agree"),  # the tolerance itself is tolerated
        (-0.05, 0.001, 100.0, "agree"),  # inverted for sure, by too little to matter
        (-0.29, 0.1, 100.0, "agree"),  # noise reaches this far once in a hundred runs
        (1.05, 0.1, 100.0, "gap"),
        (20.0, 3.0, 100.0, "gap"),  # larger than its noise, however large that is
        (20.0, 3.0, 1.1, "gap"),
        (1.5, 0.8, 100.0, "noisy"),  # more noise than gap
        (0.1, 0.6, 100.0, "noisy"),
        (-0.5, 0.6, 100.0, "noisy"),
        (-0.31, 0.1, 100.0, "inverted"),
        (-6.38, 0.5, 1.5, "inverted"),  # the paper's Omniglot DBM: few chains do not explain six nats
        (-0.9, 0.1, 1.5, "degenerate"),
        (0.1, 0.1, 4.9, "degenerate"),
        (0.1, 0.1, math.nan, "degenerate"),
        (0.3, math.nan, 100.0, "noisy"),
        (1.5, math.nan, 100.0, "gap"),
        (-1.5, math.nan, 100.0, "inverted"),
        (math.nan, 0.1, 100.0, "degenerate"),
        (math.inf, math.nan, 100.0, "degenerate"),
        (-math.inf, math.nan, math.nan, "degenerate"),
    ],
)
def test_reason(gap, error, ess, reason):
    judged = verdict(gap, error, ess=ess)
    assert judged.reason == reason
    assert judged.trusted == (reason == "agree")
    assert judged.to_dict() == {"reason": reason, "trusted": judged.trusted, "sentence": str(judged)}


@pytest.mark.parametrize(
    ("chains", "ess", "reason"),
    [(4, 1.9, "degenerate"), (4, 4.0, "degenerate"), (2, 2.0, "degenerate"), (5, 5.0, "agree")],
)
def test_few_chains_are_not_trusted_however_well_they_agree(chains, ess, reason):
    assert verdict(0.1, 0.1, ess=ess, chains=chains).reason == reason


@pytest.mark.parametrize(
    ("judged", "sentence"),
    [
        (verdict(0.042, 0.01), "Agree: the two estimates are 0.04 nats apart (tolerance 1)."),
        (verdict(-0.003, 0.01), "Agree: the two estimates are less than 0.01 nats apart (tolerance 1)."),
        (
            verdict(4.29, 0.4),
            "Gap too large: the two estimates are 4.29 nats apart, and the truth may lie anywhere between "
            "them. Raise `steps`.",
        ),
        (
            verdict(-0.39, 0.02),
            "Inverted: RAISE lies 0.39 nats above AIS. RAISE bounds the annealing model's likelihood, and "
            "with these steps that seems to be a better model than the one evaluated (or AIS is off by "
            "noise). Raise `steps`: the annealing model turns into the model.",
        ),
        (
            verdict(0.2, 0.3, ess=1.3),
            "Degenerate weights: of 400 AIS chains as few as 1.3 carry the estimate, so its error is "
            "unknown. Raise `steps`, or `ais_chains`.",
        ),
        (
            verdict(0.2, 0.73),
            "Too noisy: the gap is only known to ± 0.73 nats. Raise `examples`, `chains` or `ais_chains`.",
        ),
        (
            verdict(0.2, math.nan),
            "Noise unknown: a single chain or a single example has no standard error, so agreement would "
            "mean nothing. Use at least two of each.",
        ),
        (
            verdict(math.nan, math.nan),
            "Degenerate weights: the gap is nan, because some log weights are not finite. Are the model's "
            "parameters of a sensible size?",
        ),
    ],
)
def test_sentence(judged, sentence):
    assert str(judged) == sentence


@pytest.mark.parametrize("base", ["uniform", "model"])
def test_a_large_gap_from_another_base_recommends_the_data_base(base):
    assert verdict(9.0, 0.1, base=base).sentence.endswith(
        "Raise `steps`, or anneal from data base rates (`train`)."
    )


gaps = st.floats(allow_nan=True, allow_infinity=True)


@given(gaps, gaps.map(abs), gaps, st.integers(1, 10**6), st.floats(1e-3, 1e3))
def test_trust_needs_every_number_to_be_known_and_small(gap, error, ess, chains, tolerance):
    judged = verdict(gap, error, ess=ess, chains=chains, tolerance=tolerance)
    if judged.trusted:
        assert abs(gap) <= tolerance
        assert 2 * error <= tolerance
        assert ess >= 5 - 1e-6


@given(st.floats(0, 0.5), st.floats(0.01, 0.5))
def test_a_larger_tolerance_never_takes_trust_away_from_a_bracket(error, gap):
    trusted = [verdict(gap, error, tolerance=tolerance).trusted for tolerance in (0.1, 0.3, 1.0, 3.0)]
    assert trusted == sorted(trusted)


@pytest.mark.parametrize(
    ("gap", "error", "k", "apart", "reason"),
    [
        (0.1, 0.1, 0.69, 4.9, "agree"),
        (0.1, 0.1, 0.71, 1.0, "agree"),  # three times the error would still do
        (0.1, 0.2, 0.71, 1.0, "heavy"),
        (0.1, 0.01, 1.0, 1.0, "heavy"),  # no mean, no error
        (0.1, 0.1, 0.3, 5.1, "halves"),
        (9.0, 0.1, 2.0, 9.0, "gap"),  # what is certain comes first
        (-9.0, 0.1, 2.0, 9.0, "inverted"),
        (0.1, 0.6, 0.3, math.nan, "noisy"),
    ],
)
def test_what_the_weights_say_of_themselves(gap, error, k, apart, reason):
    judged = verdict(gap, error, k=k, apart=apart)
    assert judged.reason == reason
    assert judged.trusted == (reason == "agree")


def test_a_few_chains_come_before_their_tail():
    assert verdict(0.1, 0.1, ess=1.5, k=2.0).reason == "degenerate"


def test_agreement_is_not_enough_if_the_interval_is_wider_than_was_asked_for():
    agreed = verdict(0.1, 0.01)
    assert judge_target(agreed, 0.1, 0.1) is agreed
    missed = judge_target(agreed, 0.25, 0.1)
    assert (missed.reason, missed.trusted) == ("target", False)
    assert missed.sentence.startswith(
        "Target missed: ± 0.1 nats were asked for, and the value is known to ± 0.25 nats."
    )
    worse = verdict(9.0, 0.1)
    assert judge_target(worse, 4.6, 0.1) is worse  # what is wrong is said, not that it is not enough
    assert judge_target(agreed, math.inf, 0.1).reason == "target"


WEIGHTS = np.log(np.random.default_rng(0).uniform(0.9, 1.1, 400))


def finding(name="uniform", log_z=0.0, lacking=0.0, stderr=0.01):
    return Finding(name, log_z, 0.05, 1.0, lacking, stderr, 0.0, () if name == "modes" else (0.0,) * 32)


def doubted(*findings, gap=0.1, unweighed=0, **doubts):
    evidence = Evidence(findings, modes=16, unweighed=unweighed) if findings else None
    given = {"between": (-87.0, -86.0), "log_weights": WEIGHTS} | doubts
    return verdict(gap, 0.01, evidence=evidence, **given)


@pytest.mark.parametrize(
    ("findings", "doubts", "reason"),
    [
        ([], {}, "unchecked"),
        ([finding()], {}, "agree"),
        ([finding(lacking=0.05)], {}, "agree"),
        ([finding(lacking=1.0, stderr=0.1)], {}, "modes"),
        ([finding(lacking=0.3, stderr=0.3)], {}, "agree"),  # a single lucky weight
        ([finding(), finding("modes", lacking=1.0)], {}, "modes"),
        ([finding(log_z=0.5)], {}, "bases"),
        ([finding()], {"unweighed": 1}, "unweighed"),
        ([finding("modes", lacking=1.0)], {"unweighed": 1}, "modes"),
        ([finding(log_z=-5.0)], {}, "agree"),  # a lower bound that is lower says nothing
        ([finding("modes", log_z=0.5)], {}, "agree"),
        ([finding()], {"exact": -86.5}, "agree"),
        ([finding()], {"exact": -86.0 + 1e-10}, "agree"),  # rounding
        ([finding()], {"exact": -85.9}, "exact"),
        ([finding(lacking=1.0)], {"exact": -85.9}, "exact"),
        ([finding()], {"log_f_rise": 0.2}, "log_f"),
        ([finding()], {"log_f_rise": 0.1}, "agree"),
        ([finding()], {"log_f_rise": math.inf}, "log_f"),
        ([finding()], {"log_f_unknown": 0.6}, "log_f"),
        ([], {"log_f_rise": 0.2}, "log_f"),
    ],
)
def test_agreement_is_doubted(findings, doubts, reason):
    judged = doubted(*findings, **doubts)
    assert judged.reason == reason
    assert judged.trusted == (reason == "agree")


def test_doubts_say_where_and_how_much():
    assert doubted().sentence == (
        "Agree, not checked for missed modes: the two estimates are 0.10 nats apart (tolerance 1), but both sides "
        "miss what no chain has found, and no other starts were tried (`evidence`)."
    )
    missed = doubted(finding(log_z=0.7, lacking=1.0, stderr=0.1)).sentence
    assert missed.startswith(
        "Modes missed: states found from base uniform are out of reach of the chains from base data, which lack "
        "0.69 ± 0.05 nats of log Z."
    )
    assert missed.endswith("use base uniform.")
    assert "from modes of the model" in doubted(finding("modes", lacking=1.0)).sentence
    assert doubted(finding(log_z=0.5)).sentence.startswith(
        "Bases disagree: log Z is 0.50 ± 0.05 from base uniform and 0.01 from base data."
    )
    assert doubted(finding(), exact=-85.9).sentence.startswith(
        "Exact value outside: it is -85.9000, and the interval says -87.0000 to -86.0000."
    )


def test_what_is_worse_is_not_doubted_but_said():
    assert doubted(finding(lacking=1.0), gap=9.0, exact=-80.0).reason == "gap"


def judged_log_z(gap=0.1, error=0.01, **case):
    return verdict(gap, error, log_z=True, log_weights=case.pop("log_weights", WEIGHTS), **case)


@pytest.mark.parametrize(
    ("case", "reason", "begin", "end"),
    [
        ({}, "agree", "Agree: the two sides are 0.10 nats apart", "(tolerance 1)."),
        ({"gap": math.inf, "error": math.nan}, "unchecked", "One side only: ", "no upper side."),
        (
            {"gap": math.inf, "error": math.nan, "evidence": Evidence((finding(),))},
            "gap",
            "Gap too large: no melted state is in reach",
            "Raise `steps`.",
        ),
        (
            {"gap": 9.0},
            "gap",
            "Gap too large: the two sides are 9.00 nats apart, and log Z may lie",
            "a `budget`.",
        ),
        (
            {"gap": 1.01, "error": 0.1},
            "gap",
            "Gap too large: ",
            "Raise `steps`, or give a `gap` and a `budget`.",
        ),
        (
            {"error": 0.6},
            "noisy",
            "Too noisy: log Z is only known to ± 0.60 nats.",
            "Raise `chains`, or `steps`.",
        ),
        ({"error": math.nan}, "noisy", "Too noisy: ", ""),
        ({"ess": 1.3}, "degenerate", "Degenerate weights: of 400 AIS chains as few as 1.3", "or `chains`."),
        ({"log_weights": np.full(4, np.inf)}, "degenerate", "Degenerate weights: some log weights", "size?"),
        ({"exact": 3.0, "between": (0.0, 1.0)}, "exact", "Exact value outside: it is 3.0000", "is right."),
        (
            {"gap": 9.0, "evidence": Evidence((finding("exact samples", lacking=1.0),))},
            "modes",
            "Modes missed: states found from exact samples are out of reach",
            "The interval allows for it. To close it, raise `steps`, or use another `base`.",
        ),
        (
            {"gap": 9.0, "evidence": Evidence((finding(log_z=0.5),))},
            "bases",
            "Bases disagree: log Z is 0.50 ± 0.05 from base uniform",
            "raise `steps`, or use base uniform.",
        ),
    ],
)
def test_log_z_is_judged_by_the_same_rules_with_missed_modes_first(case, reason, begin, end):
    with np.errstate(invalid="ignore"):
        judged = judged_log_z(**case)
    assert judged.reason == reason
    assert judged.sentence.startswith(begin)
    assert judged.sentence.endswith(end)
    assert judged.trusted == (reason == "agree")


def test_an_interval_of_log_z_that_is_wider_than_was_asked_for():
    wide = judged_log_z(gap=9.0)
    missed = judge_target(wide, 4.6, 0.1, log_z=True)
    assert (missed.reason, missed.sentence) == (
        "target",
        "Target missed: ± 0.1 nats were asked for, and log Z is known to ± 4.60 nats. Give more time (`budget`).",
    )
    assert "unknown from above" in judge_target(wide, math.inf, 0.1, log_z=True).sentence
    assert str(judge_target(wide, 4.6, 0.1, log_z=True, needed=Needed(700.0, 1800.0))).endswith(
        "It would take about 12 min more: give a `budget` of 42 min in all."
    )
    assert "No stage of any size" in str(
        judge_target(wide, 4.6, 0.1, log_z=True, needed=Needed(math.inf, 1.0))
    )
    heavy = judged_log_z(k=2.0)
    assert judge_target(heavy, 4.6, 0.1, log_z=True) is heavy
