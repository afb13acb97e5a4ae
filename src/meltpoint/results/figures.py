"""Figures of reports, fit for print: legible in grey."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.extras import require
from meltpoint.formats.atomic import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from meltpoint.results.report import Report

FIGURE_FORMATS = (".png", ".pdf", ".svg")

CONSERVATIVE: dict[str, Any] = {"color": "#0b6fa4", "marker": "o", "linestyle": "-"}
OPTIMISTIC: dict[str, Any] = {"color": "#d1550f", "marker": "^", "linestyle": "--"}
EXACT: dict[str, Any] = {"color": "#222222", "linestyle": ":"}
_HEADROOM = 1.35  # of the tallest bar, for the legend
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "figure.constrained_layout.use": True,
}


def plot_report(report: Report) -> Figure:
    """Left: RAISE per example against AIS. Right: spread of the log weights of both."""
    with panels(2) as (figure, (left, right)):
        _plot_examples(report, left)
        plot_spread(report, right)
    return figure


def plot_closing_in(reports: Sequence[Report]) -> Figure:
    """Both estimates over the number of steps, closing in on the exact value where it is known."""
    reports = sorted(reports, key=lambda report: report.settings.steps)
    steps = [report.settings.steps for report in reports]
    with panels(1, width=5.0, height=3.2) as (figure, (axes,)):
        for label, style, estimates in (
            ("AIS, optimistic", OPTIMISTIC, [report.optimistic for report in reports]),
            ("RAISE, conservative", CONSERVATIVE, [report.conservative for report in reports]),
        ):
            values = [estimate.value for estimate in estimates]
            errors = 2 * np.nan_to_num([estimate.stderr for estimate in estimates])
            axes.errorbar(steps, values, yerr=errors, capsize=2.5, lw=1.4, label=label, **style)
        exact = next((report.exact for report in reports if report.exact), None)
        if exact:
            shown = f"{exact.value:.2f}".replace("-", "\N{MINUS SIGN}")
            axes.axhline(exact.value, **EXACT, lw=1.4, label=f"exact, {shown}")
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("annealing steps")
        axes.set_ylabel("mean test log-probability, nats")
        axes.set_title(f"{reports[0].model}, base {reports[0].settings.base}; bars: ± 2 standard errors")
        axes.legend(loc="best")
    return figure


def check_figure_path(path: Path) -> None:
    """Refuse a figure's path whose format is not known, before the work is done."""
    if path.suffix.lower() not in FIGURE_FORMATS:
        raise InputError(
            found=f"{path} for a figure",
            expected="a name that ends in .png, .pdf or .svg",
            remedy="rename it",
        )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure atomically."""
    check_figure_path(path)
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=200)


@contextmanager
def styled_figure(width: float, height: float, style: dict[Any, Any] | None = None) -> Iterator[Figure]:
    """A figure in this library's style and some settings more; pyplot and its settings stay untouched."""
    mpl = require("matplotlib", "figures")
    from meltpoint.results.notebook_figure import NotebookFigure

    with mpl.rc_context(_STYLE | (style or {})):
        figure = NotebookFigure(figsize=(width, height))
        yield figure
        # Ticks are made when they are first drawn, in the style that holds then.
        figure.draw_without_rendering()


@contextmanager
def panels(columns: int, width: float = 7.0, height: float = 3.0) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with panels side by side."""
    with styled_figure(width, height) as figure:
        yield figure, list(figure.subplots(1, columns, squeeze=False)[0])


def _plot_examples(report: Report, axes: Axes) -> None:
    per = report.per_example
    optimistic = per.log_f - report.log_z.value
    errors = np.nan_to_num(per.stderr)
    axes.errorbar(optimistic, per.log_prob, yerr=errors, fmt="o", ms=3, lw=0.7, color=CONSERVATIVE["color"])
    ends = [min(optimistic.min(), per.log_prob.min()), max(optimistic.max(), per.log_prob.max())]
    axes.plot(ends, ends, **EXACT, lw=1, label="equal")
    axes.set_xlabel("AIS log p(v), nats")
    axes.set_ylabel("RAISE log p(v), nats")
    axes.set_title(f"{len(per.log_prob):,} test example{'' if len(per.log_prob) == 1 else 's'}")
    axes.legend(loc="upper left")


def plot_spread(report: Report, axes: Axes) -> None:
    """Histograms of the log weights of AIS, and of RAISE within examples."""
    axes.set_xlabel("log weight minus its mean, nats")
    axes.set_ylabel("density")
    axes.set_title("Spread of the log weights")
    ais, per = report.ais_log_weights, report.per_example.log_weights
    spreads: list[tuple[str, dict[str, Any], str, NDArray[np.floating]]] = []
    if ais.size:
        spreads.append(("AIS", OPTIMISTIC, "", ais - ais.mean()))
    if per.size:
        within = (per - per.mean(axis=1, keepdims=True)).ravel()
        spreads.append(("RAISE, within examples", CONSERVATIVE, "////", within))
    # A single chain, or weights that are all equal, have no spread to show.
    spreads = [spread for spread in spreads if np.ptp(spread[-1]) > 0]
    if not spreads:
        axes.text(0.5, 0.5, "none: all weights are equal", ha="center", transform=axes.transAxes)
        return
    edges = np.histogram_bin_edges(np.concatenate([values for *_, values in spreads]), bins=40).tolist()
    for label, style, hatch, values in spreads:
        fill = {"alpha": 0.45, "facecolor": style["color"], "edgecolor": style["color"], "hatch": hatch}
        axes.hist(values, bins=edges, density=True, histtype="stepfilled", label=label, **fill)
    axes.set_ylim(top=_HEADROOM * axes.get_ylim()[1])
    axes.legend(loc="upper left")
