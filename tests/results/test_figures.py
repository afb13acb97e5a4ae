import io
import re

import matplotlib as mpl
import numpy as np
import pytest

from meltpoint.errors import InputError
from meltpoint.results.figures import plot_closing_in, save_figure
from meltpoint.results.report import PerExample
from meltpoint.statistics.estimate import Estimate
from results.made import made


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
    assert left.get_title(loc="left") == "4 test examples"
    assert (left.get_xlabel(), left.get_ylabel()) == ("AIS log p(v), nats", "RAISE log p(v), nats")
    x, y = left.lines[0].get_data()
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
    assert figure.axes[0].get_title(loc="left") == "1 test example"
    assert not figure.axes[1].patches
    assert figure.axes[1].texts[0].get_text() == "none: all weights are equal"


def test_closing_in_is_in_the_order_of_the_steps():
    (axes,) = plot_closing_in(closing_in(Estimate(-25.0, 0.0, "exact", ""))).axes
    ais, reverse = (container.lines[0].get_data(orig=False) for container in axes.containers)
    np.testing.assert_array_equal(ais[0], [1, 10, 100])
    np.testing.assert_allclose(ais[1], [-24, -24.9, -24.99])
    np.testing.assert_allclose(reverse[1], [-26, -25.1, -25.01])
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert labels == {"AIS, optimistic", "RAISE, conservative", "exact, −25.00"}


def test_closing_in_without_an_exact_value():
    (axes,) = plot_closing_in(closing_in()).axes
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
