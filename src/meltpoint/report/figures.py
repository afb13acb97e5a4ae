"""Figures of reports, fit for print: legible in grey, no colour carries meaning alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meltpoint.errors import InputError
from meltpoint.files.atomic import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from meltpoint.report.report import Report

CONSERVATIVE = {"color": "#0b6fa4", "marker": "o", "linestyle": "-"}
OPTIMISTIC = {"color": "#d1550f", "marker": "^", "linestyle": "--"}
EXACT = {"color": "#222222", "linestyle": ":"}
_FORMATS = (".png", ".pdf", ".svg")
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "figure.constrained_layout.use": True,
}


@contextmanager
def panels(columns: int, width: float = 7.0, height: float = 3.0) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with panels side by side in this library's style; pyplot and its settings stay untouched."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):  # pyright: ignore[reportArgumentType]
        figure = Figure(figsize=(width, height))
        yield figure, list(figure.subplots(1, columns, squeeze=False)[0])


def plot_report(report: Report) -> Figure:
    """Left: RAISE per example against AIS. Right: spread of the log weights of both."""
    with panels(2) as (figure, (left, right)):
        _plot_examples(report, left)
        _plot_spread(report, right)
        return figure


def plot_closing_in(reports: Sequence[Report]) -> Figure:
    """Both estimates over the number of steps, closing in on the exact value where it is known."""
    with panels(1, width=5.0, height=3.4) as (figure, (axes,)):
        reports = sorted(reports, key=lambda r: r.settings.steps)
        steps = [r.settings.steps for r in reports]
        for label, style, estimates in (
            ("AIS, optimistic", OPTIMISTIC, [r.optimistic for r in reports]),
            ("RAISE, conservative", CONSERVATIVE, [r.conservative for r in reports]),
        ):
            values = [e.value for e in estimates]
            errors = 2 * np.nan_to_num([e.stderr for e in estimates])
            axes.errorbar(steps, values, yerr=errors, capsize=2.5, lw=1.4, label=label, **style)
        exact = next((r.exact for r in reports if r.exact), None)
        if exact:
            axes.axhline(exact.value, **EXACT, lw=1.4, label=f"exact, {exact.value:.2f}")
        axes.set_xscale("log")
        axes.set_xlabel("annealing steps")
        axes.set_ylabel("mean test log-probability, nats")
        axes.set_title(f"{reports[0].model}, base {reports[0].settings.base} (bars: ± 2 standard errors)")
        axes.legend(loc="best")
        return figure


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


def _plot_spread(report: Report, axes: Axes) -> None:
    ais = report.ais_log_weights - report.ais_log_weights.mean()
    per = report.per_example.log_weights
    within = (per - per.mean(axis=1, keepdims=True)).ravel()
    drawn = [
        (values, label, style, hatch)
        for values, label, style, hatch in (
            (ais, "AIS", OPTIMISTIC, None),
            (within, "RAISE, within examples", CONSERVATIVE, "////"),
        )
        if np.ptp(values) > 0
    ]
    if drawn:
        edges = np.histogram_bin_edges(np.concatenate([entry[0] for entry in drawn]), bins=40).tolist()
    for values, label, style, hatch in drawn:
        fill = {"alpha": 0.45, "facecolor": style["color"], "edgecolor": style["color"], "hatch": hatch}
        axes.hist(values, bins=edges, density=True, histtype="stepfilled", label=label, **fill)
        axes.legend(loc="upper left")
    axes.set_xlabel("log weight minus its mean, nats")
    axes.set_ylabel("density")
    axes.set_title("Spread of the log weights")


def check_figure_path(path: Path) -> None:
    """Refuse a figure's path whose format is not known, before the work is done."""
    if path.suffix.lower() not in _FORMATS:
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
