import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meltpoint as mp
from meltpoint.errors import InputError
from meltpoint.estimators.conventions import ConventionCheck
from meltpoint.results.citation import paper_sentence
from meltpoint.results.elements import element
from meltpoint.results.report import PerExample, Report
from meltpoint.results.shown import ShownStates, choose_shown, image_side
from meltpoint.results.stages import StageSummary
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate
from results.made import EVIDENCE, bare, full, made
from results.test_views import Outline

HOSTILE = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>\"'>${style}\x1b[2J\u202e"
VOID = {"meta", "img", "br"}


def test_the_page_has_every_section_and_is_small():
    page = full(exact=None).to_html()
    outline = Outline(page)
    headings = re.findall(r"<h2[^>]*>([^<]*)</h2>", page)
    assert headings == [
        "The answer",
        "The two sides over the stages",
        "Evidence of every start",
        "Weights and their tail",
        "Example by example",
        "Friction and schedule",
        "Samples of the model beside data",
        "In a paper",
        "To repeat it",
    ]
    assert len(page.encode()) < 200_000
    text = "".join(outline.text)
    for shown in (
        "−86.55 to −86.31 nats",
        "zoo/m.npz",
        "mnist",
        "89ab",
        "@inproceedings{burda2015accurate",
        "seed=7",
    ):
        assert shown in text
    assert page.index("This answer can be trusted") < page.index("<h2")


def test_what_a_report_lacks_is_left_out():
    page = bare().to_html()
    Outline(page)
    for absent in ("stages", "samples", "<img", "nan", "inf ", "None"):
        assert absent not in re.sub(r"<style>.*?</style>", "", page, flags=re.S), absent
    assert "Other starts were not tried" in page
    assert "no interval is known" in page


def test_hostile_texts_stay_texts():
    page = full(
        model=HOSTILE,
        names={HOSTILE: HOSTILE, "model": HOSTILE, "test": HOSTILE},
        versions={HOSTILE: HOSTILE},
    ).to_html()
    outline = Outline(page)
    assert "script" not in outline.tags
    assert not any(name == "onerror" for name, _ in outline.attributes)
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_attributes_and_children_are_escaped_but_elements_are_not():
    assert element("p", element("b", "<"), title='"') == '<p title="&quot;"><b>&lt;</b></p>'


def test_the_page_of_a_report_that_was_written_and_read_is_the_same(tmp_path):
    report = full()
    report.save(tmp_path / "report.json")
    report.save(tmp_path / "report.html")
    again = mp.Report.from_dict(json.loads((tmp_path / "report.json").read_text()))
    assert again.to_dict() == report.to_dict()
    assert again.to_html() == report.to_html() == (tmp_path / "report.html").read_text()
    assert str(again) == str(report)


def test_weights_that_are_not_finite_come_back():
    weights = np.array([-np.inf, 1.0, np.nan])
    again = Report.from_dict(json.loads(json.dumps(made(ais_log_weights=weights).to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(again.ais_log_weights, weights)


@pytest.mark.parametrize("content", [{}, {"model": 1}, full().to_dict() | {"examples": None}])
def test_what_is_no_report_is_refused(content):
    with pytest.raises(InputError, match=r"expected what Report\.to_dict"):
        Report.from_dict(content)


def test_a_report_is_saved_as_json_or_html(tmp_path):
    with pytest.raises(InputError, match=re.escape("a name that ends in .json or .html")):
        made().save(tmp_path / "report.txt")
    assert not list(tmp_path.iterdir())


def test_sequences_and_numbers_are_texts():
    report = full()
    n = len(report.shown.positions)
    sites = np.random.default_rng(0).integers(0, 21, (n, 30)).astype(np.uint8)
    potts = replace(report, shown=ShownStates("potts", report.shown.positions, sites, sites))
    page = potts.to_html()
    assert "<img" not in page
    assert "".join("0123456789abcdefghijk"[s] for s in sites[0]) in page
    gauss = replace(report, shown=ShownStates("gaussian", report.shown.positions, sites / 7.0, sites / 7.0))
    assert f"{sites[0, 0] / 7.0:.3g}, {sites[0, 1] / 7.0:.3g}" in gauss.to_html()
    assert Report.from_dict(gauss.to_dict()).to_html() == gauss.to_html()


def test_the_worst_examples_are_shown():
    report = full()
    order = np.argsort(-np.abs(report.per_example_differences))[:8]
    shown = re.findall(r"<figcaption>Test example (\d+): ", report.to_html())
    assert [int(position) for position in shown] == report.per_example.positions[order].tolist()


def test_pictures_are_squares():
    assert [image_side(n) for n in (16, 25, 64, 784, 785)] == [None, 5, 8, 28, None]


def test_a_notebook_shows_a_few_lines():
    log_z = mp.LogZ(451.28, 0.017, "lower bound", "noise", np.zeros(1000), 31.4)
    prob = mp.LogProb(np.zeros(50), np.zeros(50), np.zeros((50, 20)))
    for shown in (full(), log_z, prob):
        page = shown._repr_html_()
        Outline(page)
        assert len(page) < 8000
    assert "−86.55 to −86.31" in full(exact=None)._repr_html_()
    assert "−86.4000 nats per example, exact" in full()._repr_html_()
    assert "31.4 of 1,000" in log_z._repr_html_()


def test_no_result_prints_its_weights():
    report = full()
    for shown in (report, report.evidence, report.per_example, report.log_z, report.friction, report.shown):
        assert len(repr(shown)) < 1000
    long = replace(report.evidence.findings[0], log_weights=tuple(np.arange(1000.0).tolist()))
    assert len(repr(long)) < 300


numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, -0.0, 1e-300, 1e300, -1e300])
)


@settings(max_examples=min(60, settings().max_examples))
@given(numbers, numbers.map(abs), numbers, st.integers(1, 3))
def test_any_report_is_a_page_without_nan(value, stderr, other, chains):
    estimate = Estimate(value, stderr, "exact", "")
    per = PerExample(
        np.arange(2),
        np.array([value, other]),
        np.array([stderr, 0]),
        np.array([other, 0]),
        *np.full((2, 2, chains), value),
    )
    finding = replace(EVIDENCE.findings[0], log_z=other, log_z_stderr=stderr)
    report = made(
        exact=estimate,
        gap=Estimate(other, stderr, "difference", ""),
        optimistic=estimate,
        ess=stderr,
        pareto_k=value,
        between=(value, other),
        upper_bound=other,
        evidence=replace(EVIDENCE, findings=(finding,)),
        stages=(StageSummary(1, 2, 3, 4, 5, value, other, value, stderr, other),) * 2,
        per_example=per,
        ais_log_weights=np.array([value, other]),
        budget=1.0,
        certificate=Certificate(value, 0.99, "mean log p_N"),
        log_z_certificate=Certificate(other, 0.99, "log Z"),
        seconds={},
    )
    page = report.to_html()
    outline = Outline(page)
    drawn = [
        text
        for name, text in outline.attributes
        if name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "points", "height", "width")
    ]
    assert not any("nan" in text or "inf" in text for text in drawn)
    report._repr_html_()


@pytest.mark.slow
def test_the_page_stays_small_whatever_the_report():
    rng = np.random.default_rng(0)
    n = 20_000
    weights = rng.normal(-90, 1, (n, 10))
    per = PerExample(np.arange(n), rng.normal(size=n), np.ones(n), rng.normal(size=n), weights, -weights)
    states = rng.integers(0, 2, (n, 3600)).astype(np.uint8)
    shown = choose_shown("bernoulli", per.positions, states, per.log_f - per.log_prob)
    long = "x" * 1_000_000
    report = made(
        per_example=per,
        ais_log_weights=rng.normal(size=n),
        shown=replace(shown, samples=states[:4]),
        names={"model": long, "test": long, "train": long},
        model=long,
    )
    assert len(report.to_html()) < 2_000_000


def test_a_suspected_misreading_stands_beside_the_verdict():
    check = ConventionCheck(-9.0, {"sign": 4.0}, "sign", "all parameters have the other <sign>", "flip it")
    report = replace(made(), conventions=check)
    page = report.to_html()
    assert not report.trusted
    assert "The data fit better if all parameters" in paper_sentence(report)
    assert "Not to be trusted" in page
    assert "The data fit better if all parameters have the other &lt;sign&gt;" in page
