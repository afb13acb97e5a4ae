"""A trace as text of at most 79 columns, as HTML for notebooks, and as a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from meltpoint.errors import shortened
from meltpoint.results.duration import duration
from meltpoint.results.figures import CONSERVATIVE, OPTIMISTIC, styled_figure
from meltpoint.results.text import html_table, interval_text, text_table, wrapped
from meltpoint.results.trace import Interval, Trace, TracePoint
from meltpoint.statistics.estimate import decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEAD = ("checkpoint", "RAISE", "AIS", "test, between", "train, between", "overfit", "")
"""Columns of the table; the last one has marks."""

_WIDTH = 79
_LABEL = 14
_NAME = 16
_MOST_TICKS = 12


def render_trace(trace: Trace) -> str:
    """The trace as lines of text: a table, what it shows, and what its columns are."""
    title = f"{len(trace.points)} checkpoints on {trace.test_examples:,} test examples"
    if trace.train_examples:
        title += f" and {trace.train_examples:,} training examples"
    rows = [trace_row(point) for point in trace.points]
    lines = [
        *textwrap.wrap(f"{title}, nats per example", _WIDTH),
        "─" * _WIDTH,
        *text_table(HEAD, rows, (HEAD[0], HEAD[-1])),
        "",
    ]
    lines += [*textwrap.wrap(trace.verdict, _WIDTH), ""]
    for label, text in _details(trace):
        lines += wrapped(text, _WIDTH, label, _LABEL)
    return "\n".join(lines)


def trace_row(point: TracePoint) -> list[str]:
    """The cells of one checkpoint."""
    return [
        shortened(point.name, _NAME),
        decimals(point.conservative.value, 2),
        decimals(point.optimistic.value, 2),
        interval_text(point.between),
        interval_text(point.train_between),
        decimals(point.overfit.value, 2) if point.overfit else "",
        ("s" if point.new_schedule else "") + ("e" if point.checked else "") + ("" if point.sound else "!"),
    ]


def trace_html(trace: Trace) -> str:
    """The trace as an HTML table; names that come from files are escaped."""
    table = html_table(HEAD, [[point.name, *trace_row(point)[1:]] for point in trace.points])
    details = "".join(f"<p>{escape(label)}: {escape(text)}</p>" for label, text in _details(trace))
    return f"<p><strong>{escape(trace.verdict)}</strong></p>\n{table}\n{details}"


def plot_trace(trace: Trace) -> Figure:
    """Bands of test and training likelihood over the checkpoints, with RAISE and AIS on the test examples."""
    with styled_figure(6.5, 3.4) as figure:
        axes = figure.subplots()
        places = np.arange(len(trace.points))
        if trace.points[0].train_between is not None:
            ends = [point.train_between or (math.nan, math.nan) for point in trace.points]
            _band(axes, places, ends, "#888888", "training, between", "////")
        _band(axes, places, [point.between for point in trace.points], CONSERVATIVE["color"], "test, between")
        for label, style, values in (
            ("test, AIS", OPTIMISTIC, [point.optimistic.value for point in trace.points]),
            ("test, RAISE", CONSERVATIVE, [point.conservative.value for point in trace.points]),
        ):
            axes.plot(places, values, lw=1.2, label=label, **style)
        if all(point.exact is not None for point in trace.points):
            exact = [point.exact for point in trace.points]
            axes.plot(places, exact, color="#222222", ls=":", lw=1.4, label="test, exact")  # pyright: ignore
        best = trace.points.index(trace.best)
        axes.axvline(best, color="#222222", lw=0.7, ls=(0, (1, 2)))
        every = max(1, -(-len(places) // _MOST_TICKS))
        names = [shortened(point.name, _NAME) for point in trace.points[::every]]
        longest = max(map(len, names)) * len(names) > 60
        axes.set_xticks(
            places[::every], names, rotation=30 if longest else 0, ha="right" if longest else "center"
        )
        axes.set_ylabel("mean log-probability, nats")
        axes.set_title(f"Best on the test examples: {shortened(trace.best.name, 30)}")
        axes.legend(loc="best", ncols=2, fontsize=8)
    return figure


def _band(
    axes: Axes, places: np.ndarray, ends: Sequence[Interval], color: str, label: str, hatch: str = ""
) -> None:
    low, high = np.where(np.isfinite(ends), ends, np.nan).T
    axes.fill_between(places, low, high, alpha=0.3, color=color, lw=0.8, label=label, hatch=hatch or None)


def _details(trace: Trace) -> list[tuple[str, str]]:
    details = [
        (
            "columns",
            "RAISE and AIS on the test examples; intervals with "
            f"{100 * trace.confidence:.12g}% confidence each, if no start missed a mode; overfit: training less "
            "test. s: schedule from a pilot here, others carry it on; e: other starts were asked; !: not to be "
            "trusted",
        )
    ]
    last = trace.points[-1].overfit
    if last is not None and math.isfinite(last.stderr):
        details.append(("overfit", f"{last} at the end; the error is that of the choice of examples"))
    details.append(
        ("run", f"{duration(trace.seconds)} in all, {duration(trace.points[0].seconds)} for the first")
    )
    return details
