"""Charts by both renderers, and the figures of a report."""

import io
import re
import struct
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

from meltpoint.errors import InputError
from meltpoint.results.charts import Axis
from meltpoint.results.figures import save_figure
from meltpoint.results.report import PerExample
from meltpoint.results.svg import ticks
from meltpoint.statistics.estimate import Estimate
from results.made import bare, full, made


def closing_in(exact=None):
    return [
        made(
            steps=steps,
            exact=exact,
            conservative=Estimate(-25 - 1 / steps, 0.1, "conservative", ""),
            optimistic=Estimate(-25 + 1 / steps, np.nan, "optimistic", ""),
        )
        for steps in (100, 1, 10)
    ]


def test_the_figure_of_a_report_shows_examples_and_spread():
    left, right = made().plot().axes
    assert left.get_title(loc="left") == "RAISE against AIS"
    assert (left.get_xlabel(), left.get_ylabel()) == ("AIS log p(v), nats", "RAISE log p(v), nats")
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["equal", "4 test examples"]
    x, y = left.containers[0].lines[0].get_data()
    np.testing.assert_allclose(x, 363.1 - 451.28)
    np.testing.assert_allclose(y, -88.0)
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["AIS", "RAISE, within examples"]


def test_the_legend_does_not_cover_the_bars():
    figure = made().plot()
    figure.canvas.draw()
    axes = figure.axes[1]
    bottom = axes.get_legend().get_window_extent().y0
    tops = [patch.get_window_extent().y1 for patch in axes.patches]
    assert max(tops) < bottom


def test_bins_are_shared_and_hold_every_weight():
    report = made()
    outlines = [patch.get_path().vertices for patch in report.plot().axes[1].patches]
    assert outlines[0][:, 0].min() == outlines[1][:, 0].min()
    assert outlines[0][:, 0].max() == outlines[1][:, 0].max()


@pytest.mark.parametrize("chains", [1, 2])
def test_weights_without_a_spread_are_not_drawn(chains):
    per = PerExample(np.arange(1), np.zeros(1), np.full(1, np.nan), np.zeros(1), *np.zeros((2, 1, chains)))
    figure = made(per_example=per, ais_log_weights=np.zeros(chains)).plot()
    assert "1 test example" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert not figure.axes[1].patches
    assert figure.axes[1].texts[0].get_text() == "none: all weights are equal"


def test_closing_in_is_in_the_order_of_the_steps():
    first, *others = closing_in(Estimate(-25.0, 0.0, "exact", ""))
    (axes,) = first.plot("bracket", sweep=others).axes
    ais, reverse = (container.lines[0].get_data(orig=False) for container in axes.containers)
    np.testing.assert_array_equal(ais[0], [1, 10, 100])
    np.testing.assert_allclose(ais[1], [-24, -24.9, -24.99])
    np.testing.assert_allclose(reverse[1], [-26, -25.1, -25.01])
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert labels == {"AIS, optimistic", "RAISE, conservative", "exact, −25.00"}


def test_closing_in_without_an_exact_value():
    first, *others = closing_in()
    (axes,) = first.plot("bracket", sweep=others).axes
    assert len(axes.get_legend().get_texts()) == 2


@pytest.mark.slow
def test_the_style_is_the_figures_own():
    before = dict(dict.items(mpl.rcParams))
    figure = made().plot()
    assert dict(dict.items(mpl.rcParams)) == before
    sizes = set()
    for _ in range(2):  # ticks that are made late must not come out in another size
        figure.savefig(io.BytesIO(), format="png")
        sizes |= {label.get_size() for axes in figure.axes for label in axes.get_xticklabels()}
    assert sizes == {9.0}


@pytest.mark.parametrize(("suffix", "head"), [(".png", b"\x89PNG"), (".PDF", b"%PDF"), (".svg", b"<?xml")])
def test_formats(tmp_path, suffix, head):
    save_figure(made().plot(), tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").read_bytes().startswith(head)
    assert len(list(tmp_path.iterdir())) == 1


def test_another_format_is_refused(tmp_path):
    with pytest.raises(InputError, match=re.escape("expected a name that ends in .png, .pdf or .svg")):
        save_figure(made().plot(), tmp_path / "figure.gif")
    assert not list(tmp_path.iterdir())


KINDS = ("overview", "bracket", "differences", "weights", "evidence", "friction", "samples")


@pytest.mark.parametrize(
    ("make", "kind"), [*((full, kind) for kind in KINDS), *((bare, kind) for kind in KINDS[:5])]
)
def test_a_notebook_shows_every_figure_by_itself(make, kind):
    figure = make().plot(kind)
    data, shown = figure._repr_png_()
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == (2 * shown["width"], 2 * shown["height"])
    assert all(axes.get_title(loc="left") or axes.get_xlabel() for axes in figure.axes)


def test_figures_do_not_touch_pyplot():
    before = "matplotlib.pyplot" in sys.modules
    full().plot("bracket")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_the_bracket_of_stages_a_sweep_and_a_single_stage():
    stages = full().plot("bracket").axes[0]
    ais, raised = (container.lines[0].get_ydata() for container in stages.containers)
    np.testing.assert_allclose(ais, [-86.2, -86.3])
    np.testing.assert_allclose(raised, [-87.1, -86.5])
    sweep = full().plot("bracket", sweep=[made(steps=10), made(steps=100)]).axes[0]
    np.testing.assert_array_equal(sweep.containers[0].lines[0].get_xdata(), [10, 100, 10_000])
    single = made().plot("bracket").axes[0]
    names = [label.get_text() for label in single.get_yticklabels()]
    assert names == ["RAISE", "AIS", "between (99%)", "at most"]


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


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-86.55, -86.3), (1e-6, 3e-6), (-1e9, 1e9), (5, 5.0001)])
def test_ticks_are_few_round_and_on_the_axis(low, high):
    axis = Axis("").around([low, high])
    found = ticks(axis)
    assert 2 <= len(found) <= 8
    assert axis.low <= found[0][0] < found[-1][0] <= axis.high * (1 + 1e-12) or axis.high < 0
    assert len({text for _, text in found}) == len(found)
