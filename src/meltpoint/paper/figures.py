"""The paper's figures, fit for print: legible in grey, error bars of two standard errors everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from meltpoint.datasets.picture import mosaic
from meltpoint.paper.cells import Cell, Plan
from meltpoint.paper.curves import Curve, curves_of
from meltpoint.paper.pictures import pictures_of
from meltpoint.paper.rows import read_estimate
from meltpoint.paper.store import Store
from meltpoint.paper.subjects import SMALL
from meltpoint.statistics.estimate import finite_or_none

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.3,
    "errorbar.capsize": 2.5,
    "figure.constrained_layout.use": True,
}
_METHODS: dict[str, dict[str, Any]] = {
    "ais": {"color": "#d1550f", "marker": "^", "linestyle": "--", "label": "AIS, optimistic"},
    "raise": {"color": "#0b6fa4", "marker": "o", "linestyle": "-", "label": "RAISE, conservative"},
}
_MODELS: list[dict[str, Any]] = [
    {"color": "#222222", "marker": "o", "linestyle": "-"},
    {"color": "#7a7a7a", "marker": "s", "linestyle": "--", "markerfacecolor": "white"},
    {"color": "#e07b39", "marker": "^", "linestyle": "-."},
    {"color": "#0b3f66", "marker": "D", "linestyle": ":", "markerfacecolor": "white"},
    {"color": "#5aa97a", "marker": "v", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "#6b2170", "marker": "p", "linestyle": (0, (7, 2)), "markerfacecolor": "white"},
]
_BASES = {"uniform": "uniform base", "data": "data base rates"}
_Y = "mean test log-probability, nats"
_SIGMAS = 2
_ENOUGH = 100  # steps, from which on a deep model's estimates are shown


def draw(name: str, plan: Plan, store: Store) -> Figure:
    """The figure of that name, from the cells that are finished."""
    curves = [curve for curve in curves_of(name, plan, store) if curve.steps]
    if name == "log-likelihood-rbms":
        return _all_rbms(curves)
    if name == "cd1-500":
        return _bases(curves)
    if name == "dbn":
        return _deep(curves)
    return _with_pictures(name, curves, plan, store)


def _all_rbms(curves: Sequence[Curve]) -> Figure:
    with _figure(6.4, 3.4) as figure:
        axes = figure.subplots()
        for curve, style in zip(curves, _MODELS, strict=False):
            _plot(curve, axes, {**style, "label": curve.subject.label})
        axes.set_ylabel(_Y)
        axes.set_title("RAISE, uniform base; bars: ± 2 standard errors")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _bases(curves: Sequence[Curve]) -> Figure:
    """A panel for each base distribution, on one scale."""
    with _figure(7.0, 3.0) as figure:
        panels = figure.subplots(1, len(_BASES), sharey=True)
        for (base, title), axes in zip(_BASES.items(), panels, strict=True):
            for curve in curves:
                if curve.base == base:
                    _plot(curve, axes, _METHODS[curve.method])
            axes.set_title(f"mnistCD1-500, {title}")
        panels[0].set_ylabel(_Y)
        panels[-1].legend(loc="best")
    return figure


def _deep(curves: Sequence[Curve]) -> Figure:
    """A panel for each deep model, without very few steps: at their scale nothing else would be seen."""
    subjects = list(dict.fromkeys(curve.subject for curve in curves))
    with _figure(7.0, 3.0) as figure:
        panels = figure.subplots(1, max(1, len(subjects)), squeeze=False)[0]
        for subject, axes in zip(subjects, panels, strict=False):
            for curve in curves:
                if curve.subject == subject:
                    _plot(_from(_ENOUGH, curve), axes, _METHODS[curve.method])
            axes.set_title(f"{subject.label}, {_BASES['uniform']}")
            axes.legend(loc="best")
        panels[0].set_ylabel(_Y)
    return figure


def _from(steps: int, curve: Curve) -> Curve:
    """The points from so many steps on; all of them where there are no others."""
    first = next((i for i, k in enumerate(curve.steps) if k >= steps), 0)
    return replace(curve, steps=curve.steps[first:], estimates=curve.estimates[first:])


def _with_pictures(name: str, curves: Sequence[Curve], plan: Plan, store: Store) -> Figure:
    """The curves on the left, two mosaics of pictures on the right."""
    with _figure(7.0, 3.4) as figure:
        panels = figure.subplot_mosaic("ca;cb", width_ratios=(1.45, 1))
        axes = panels["c"]
        for curve in curves:
            _plot(curve, axes, _METHODS[curve.method])
        exact = read_estimate(plan.exact(SMALL[0]), store) if name == "cd1-20-dbr" else None
        if exact is not None:
            shown = f"{exact.value:.2f}".replace("-", "\N{MINUS SIGN}")
            axes.axhline(exact.value, color="#222222", linestyle=":", label=f"exact, {shown}")
        axes.set_ylabel(_Y)
        if curves:
            axes.set_title(f"{curves[0].subject.label}, {_BASES[curves[0].base]}")
        axes.legend(loc="best")
        for place, cell in zip("ab", plan.pictures(name), strict=True):
            _show(cell, panels[place], store)
    return figure


def _show(cell: Cell, axes: Axes, store: Store) -> None:
    """A mosaic of the pictures of a cell."""
    titles = {
        "samples": "samples of the RBM",
        "annealed": f"annealing model, {cell.steps or 0:,} steps",
        "training": "training examples",
    }
    axes.set_axis_off()
    axes.set_title(titles[cell.method])
    record = store.read(cell)
    if record is not None:
        pictures, shape = pictures_of(record["result"])
        across = 5 if len(pictures) == 10 else 8
        axes.imshow(mosaic(pictures, shape, across), cmap="gray", interpolation="nearest")


def _plot(curve: Curve, axes: Axes, style: dict[str, Any]) -> None:
    values = [estimate.value for estimate in curve.estimates]
    errors = [_SIGMAS * (finite_or_none(estimate.stderr) or 0.0) for estimate in curve.estimates]
    axes.errorbar(curve.steps, values, yerr=errors, **style)
    axes.set_xscale("log")
    powers = [steps for steps in curve.steps if str(steps).strip("0") == "1"]
    axes.set_xticks(powers if len(powers) > 1 else curve.steps)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("annealing steps")


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """A figure in this style; pyplot and its settings stay untouched."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        yield figure
        # Ticks are made when they are first drawn, in the style that holds then.
        figure.draw_without_rendering()
