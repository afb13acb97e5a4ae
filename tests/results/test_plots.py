import struct
import sys
from dataclasses import replace

import numpy as np
import pytest

from meltpoint.errors import InputError
from results.made import made
from results.test_html import bare, full

KINDS = ("overview", "bracket", "differences", "weights", "evidence", "friction", "samples")


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_shows_every_figure_by_itself(kind):
    figure = full().plot(kind)
    data, shown = figure._repr_png_()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == (2 * shown["width"], 2 * shown["height"])
    assert all(axes.get_title(loc="left") or axes.get_xlabel() for axes in figure.axes)


def test_figures_do_not_touch_pyplot():
    before = "matplotlib.pyplot" in sys.modules
    full().plot("bracket")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_the_bracket_of_stages_a_sweep_and_a_single_stage():
    stages = full().plot("bracket").axes[0]
    np.testing.assert_allclose(stages.lines[0].get_ydata(), [-86.2, -86.3])
    np.testing.assert_allclose(stages.lines[1].get_ydata(), [-87.1, -86.5])
    sweep = full().plot("bracket", sweep=[made(steps=10), made(steps=100)]).axes[0]
    np.testing.assert_array_equal(sweep.containers[0].lines[0].get_xdata(), [10, 100, 10_000])
    single = made().plot("bracket").axes[0]
    names = [label.get_text() for label in single.get_yticklabels()]
    assert names == ["RAISE", "AIS", "between (99%)"]


def test_differences_are_ais_minus_raise():
    report = full()
    drawn = report.plot("differences").axes[0].containers[0].lines[0].get_ydata()
    expected = np.sort(report.per_example.log_f - report.log_z.value - report.per_example.log_prob)
    np.testing.assert_allclose(drawn, expected)


def test_evidence_has_every_start():
    axes = full().plot("evidence").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["data (chosen)", "uniform"]


def test_samples_that_are_no_squares_are_rows():
    report = full()
    shown = replace(report.shown, states=report.shown.states[:, :30], samples=report.shown.samples[:, :30])
    left, right = replace(report, shown=shown).plot("samples").axes
    assert left.images[0].get_array().shape == (16, 30)
    assert right.get_xlabel() == "visible unit"


@pytest.mark.parametrize(
    ("kind", "message"),
    [("friction", "without friction"), ("samples", "without samples"), ("pie", "kind='pie'")],
)
def test_what_cannot_be_drawn_is_said(kind, message):
    with pytest.raises(InputError, match=message):
        bare().plot(kind)


@pytest.mark.parametrize("kind", ["overview", "bracket", "differences", "weights", "evidence"])
def test_a_report_that_lacks_much_is_drawn_too(kind):
    assert bare().plot(kind)._repr_png_()[0].startswith(b"\x89PNG")


def test_arviz(monkeypatch):
    pytest.importorskip("arviz_base", reason="needs arviz-base (it is among the dev extras)")
    report = full()
    tree = report.to_arviz()
    np.testing.assert_array_equal(
        tree["log_likelihood"]["log_prob"].values[0, 0], report.per_example.log_prob
    )
    weights = tree["sample_stats"]["log_weight"].sel(chain=0, draw=2).values
    np.testing.assert_array_equal(weights, report.per_example.log_weights[:, 2])
    np.testing.assert_array_equal(tree["constant_data"]["ais_log_weight"].values, report.ais_log_weights)
    np.testing.assert_array_equal(tree["constant_data"]["example"].values, report.per_example.positions)


def test_without_arviz_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(InputError, match=r"pip install 'meltpoint\[arviz\]'"):
        made().to_arviz()
