"""Comparisons as text, HTML, figures and JSON, from reports that were made by hand."""

import json
import math
from dataclasses import replace

import pytest

from meltpoint.results.comparison import Rank, known_order
from meltpoint.results.pair import ComparedModel, compose_pair
from meltpoint.statistics.estimate import Estimate
from results.made import comparison_of, made, side
from results.made import three as make_three


@pytest.fixture
def three():
    return make_three()


def test_an_order_is_told_as_far_as_it_is_known(three):
    assert three.ranking == {"newer <b>": Rank(1, 2), "new": Rank(1, 2), "old": Rank(3, 3)}
    assert [str(rank) for rank in three.ranking.values()] == ["1–2", "1–2", "3"]
    assert not three.order_known
    assert not three.trusted
    assert three.verdict.startswith("Order partly known: these may be in either order: new and newer <b>.")


def test_a_known_order():
    found = comparison_of(side("old", -90.0), side("new", -80.0))
    assert found.order_known
    assert found.verdict == "Order known: new > old."
    assert found.trusted == all(report.verdict.trusted for report in found.reports.values())


def test_what_follows_from_others_is_known_and_contradictions_are_not():
    assert known_order([("a", "b"), ("b", "c"), ("c", "d")]) >= {("a", "d"), ("a", "c"), ("b", "d")}
    assert known_order([("a", "b"), ("b", "a"), ("a", "c")]) == {("a", "c"), ("b", "c")}


def test_the_text_has_79_columns_and_names_what_it_is_about(three):
    text = str(three)
    assert max(map(len, text.splitlines())) <= 79
    for words in (
        "this test set",
        "population",
        "no sampling error",
        "3 pairs together",
        "if no start missed",
    ):
        assert words in " ".join(text.split())


def test_long_names_and_large_numbers_fit():
    found = comparison_of(side("a" * 90, -1234.5), side("b" * 90, -2234.5))
    assert max(map(len, str(found).splitlines())) <= 79
    assert "…" in str(found)


def test_json_has_no_nan(three):
    content = json.loads(json.dumps(three.to_dict(), allow_nan=False))
    assert set(content) == {
        *("test_examples", "confidence", "about", "baseline", "ranking", "order_known", "trusted"),
        *("untrusted", "verdict", "pairs", "models", "missing", "interrupted", "seconds"),
    }
    assert set(content["pairs"][0]) == {
        *("first", "second", "better", "optimistic", "conservative", "exact", "between", "population"),
        *("separate", "sampling_error", "correlation", "at_most", "at_least", "certified"),
    }
    assert [model["name"] for model in content["models"]] == ["old", "new", "newer <b>"]
    assert content["ranking"][0] == {"name": "newer <b>", "best": 1, "worst": 2}


def test_the_figure_has_a_bar_for_each_model_and_pair(three):
    left, right = three.plot().axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["newer <b>", "new", "old"]
    assert len(right.get_yticks()) == 3
    assert right.get_title(loc="left") == "Differences"


def test_against_a_baseline():
    sides = [side("old", -90.0), side("new", -80.0), side("worse", -99.0)]
    pairs = tuple(compose_pair(each, sides[0], 0.005) for each in sides[1:])
    found = comparison_of(*sides, pairs=pairs, baseline="old")
    assert found.verdict.startswith("Against old: new better; worse worse.")
    assert found.order_known


def test_an_interrupted_comparison_is_not_trusted():
    found = comparison_of(side("old", -90.0), side("new", -80.0), missing=("newest",), interrupted=True)
    assert not found.trusted
    assert not found.order_known
    assert "Interrupted: newest not evaluated." in found.verdict


def test_a_report_that_is_not_trusted_is_named():
    doubtful = replace(made().verdict, reason="gap", trusted=False)
    bad = side("bad", -90.0)
    found = comparison_of(ComparedModel("bad", replace(bad.report, verdict=doubtful)), side("good", -80.0))
    assert found.untrusted == ["bad"]
    assert not found.trusted
    assert "Not to be trusted: the report of bad." in found.verdict


def test_an_exact_value_needs_no_trust_and_gives_limits_that_hold_whatever_was_missed():
    exact = Estimate(-90.01, 0.0, "exact", "")
    known, other = side("known", -90.0, exact=exact), side("other", -80.0)
    pair = compose_pair(other, known, 0.01)
    assert pair.at_most == pytest.approx(other.certified_high(0.005) + 90.01)
    assert pair.at_least is None
    assert pair.at_most > pair.between[1] - 1
    turned = compose_pair(known, other, 0.01)
    assert turned.at_least == -pair.at_most
    assert turned.at_most is None
    both = compose_pair(known, side("two", -80.0, exact=replace(exact, value=-80.5)), 0.01)
    assert both.exact == pytest.approx(-9.51)
    assert both.between == pytest.approx((-9.51, -9.51))
    assert both.at_most == both.at_least == both.exact


def test_chains_that_cannot_be_paired_count_with_the_worst_correlation():
    whole, part = side("whole", -80.0), side("part", -80.0, interrupted=True)
    assert compose_pair(whole, part, 0.01).correlation == -1.0
    pair = compose_pair(whole, part, 0.01)
    assert pair.between == pytest.approx(pair.separate)
    assert pair.conservative is None


def test_a_single_chain_has_no_interval():
    alone = side("alone", -80.0)
    weights = alone.report.ais_log_weights[:1]
    single = ComparedModel("single", replace(alone.report, ais_log_weights=weights, particles=2))
    pair = compose_pair(alone, single, 0.01)
    # Nothing is known of the single chain but that a log-probability is at most 0.
    assert pair.between == (pytest.approx(alone.limits(0.01).low), math.inf)
    assert pair.better("test set") is None
    json.dumps(pair.to_dict(), allow_nan=False)
    assert "Order unknown" in str(comparison_of(alone, single))
