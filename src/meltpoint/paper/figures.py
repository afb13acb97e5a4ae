"""The paper's figures, from finished cells: their points, and the drawings, fit for print and legible in grey."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meltpoint.datasets.picture import mosaic
from meltpoint.models.checks import Bits
from meltpoint.paper.cells import CURVES, Cell, CellMethod, PaperBase, Plan
from meltpoint.paper.models import SMALL, PaperModel
from meltpoint.paper.results import Results, write_text
from meltpoint.paper.tables import csv_numbers
from meltpoint.results.figures import CONSERVATIVE, EXACT, OPTIMISTIC, save_figure, styled_figure
from meltpoint.statistics.estimate import Estimate, finite_or_none

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: dict[Any, Any] = {
    "axes.titlesize": 9,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.3,
    "errorbar.capsize": 2.5,
}
_METHODS: dict[str, dict[str, Any]] = {
    "ais": {**OPTIMISTIC, "label": "AIS, optimistic"},
    "raise": {**CONSERVATIVE, "label": "RAISE, conservative"},
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


@dataclass(frozen=True)
class Curve:
    """Estimates of one model by one method, from few steps to many; only those that are finished."""

    model: PaperModel
    base: PaperBase
    method: CellMethod
    points: list[tuple[int, Estimate]]


def curves_of(name: str, plan: Plan, results: Results) -> list[Curve]:
    """The curves of a figure."""
    found = []
    for model, base, methods in CURVES[name]:
        for method in methods:
            cell_of = plan.ais if method == "ais" else plan.raise_
            points = [(k, results.estimate(cell_of(model, base, k))) for k in plan.profile.curve]
            found.append(Curve(model, base, method, [(k, e) for k, e in points if e is not None]))
    return found


def write_figure(name: str, plan: Plan, results: Results, folder: Path) -> list[Path]:
    """Write a figure as PDF and PNG and its points as CSV and JSON; gives the paths."""
    curves = curves_of(name, plan, results)
    paths = [
        write_text(folder / f"{name}.csv", curves_csv(curves)),
        write_text(folder / f"{name}.json", curves_json(curves)),
    ]
    figure = draw(name, plan, results)
    for suffix in (".pdf", ".png"):
        paths.append(folder / f"{name}{suffix}")
        save_figure(figure, paths[-1])
    return paths


def curves_csv(curves: Sequence[Curve]) -> str:
    """A line for each point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["model", "base", "method", "steps", "value", "stderr"])
    for curve in curves:
        for steps, estimate in curve.points:
            writer.writerow(
                [curve.model.name, curve.base, curve.method.upper(), steps, *csv_numbers(estimate)]
            )
    return text.getvalue()


def curves_json(curves: Sequence[Curve]) -> str:
    """An object for each curve."""
    objects = [
        {
            "model": curve.model.name,
            "base": curve.base,
            "method": curve.method.upper(),
            "points": [{"steps": steps, **estimate.to_dict()} for steps, estimate in curve.points],
        }
        for curve in curves
    ]
    return json.dumps(objects, indent=1, allow_nan=False) + "\n"


def pictures_of(result: dict[str, Any]) -> tuple[Bits, tuple[int, int]]:
    """The pictures (picture, pixel) that a cell's result holds as letters, and their shape."""
    rows, columns = result["image_shape"]
    packed = np.array([list(bytes.fromhex(letters)) for letters in result["pictures"]], np.uint8)
    return np.unpackbits(packed, axis=1, count=rows * columns), (rows, columns)


def draw(name: str, plan: Plan, results: Results) -> Figure:
    """The figure of that name, from the cells that are finished."""
    curves = [curve for curve in curves_of(name, plan, results) if curve.points]
    if name == "log-likelihood-rbms":
        return _all_rbms(curves)
    if name == "cd1-500":
        return _bases(curves)
    if name == "dbn":
        return _deep(curves)
    return _with_pictures(name, curves, plan, results)


def _all_rbms(curves: Sequence[Curve]) -> Figure:
    with styled_figure(6.4, 3.4, _STYLE) as figure:
        axes = figure.subplots()
        for curve, style in zip(curves, _MODELS, strict=False):
            _plot(curve, axes, {**style, "label": curve.model.label})
        axes.set_ylabel(_Y)
        axes.set_title("RAISE, uniform base; bars: ± 2 standard errors")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _bases(curves: Sequence[Curve]) -> Figure:
    """A panel for each base distribution, on one scale."""
    with styled_figure(7.0, 3.0, _STYLE) as figure:
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
    models = list(dict.fromkeys(curve.model for curve in curves))
    with styled_figure(7.0, 3.0, _STYLE) as figure:
        panels = figure.subplots(1, max(1, len(models)), squeeze=False)[0]
        for model, axes in zip(models, panels, strict=False):
            for curve in curves:
                if curve.model == model:
                    _plot(curve, axes, _METHODS[curve.method], _ENOUGH)
            axes.set_title(f"{model.label}, {_BASES['uniform']}")
            axes.legend(loc="best")
        panels[0].set_ylabel(_Y)
    return figure


def _with_pictures(name: str, curves: Sequence[Curve], plan: Plan, results: Results) -> Figure:
    """The curves on the left, two mosaics of pictures on the right."""
    with styled_figure(7.0, 3.4, _STYLE) as figure:
        panels = figure.subplot_mosaic("ca;cb", width_ratios=(1.45, 1))
        axes = panels["c"]
        for curve in curves:
            _plot(curve, axes, _METHODS[curve.method])
        exact = results.estimate(plan.exact(SMALL[0])) if name == "cd1-20-dbr" else None
        if exact is not None:
            shown = f"{exact.value:.2f}".replace("-", "\N{MINUS SIGN}")
            axes.axhline(exact.value, **EXACT, label=f"exact, {shown}")
        axes.set_ylabel(_Y)
        if curves:
            axes.set_title(f"{curves[0].model.label}, {_BASES[curves[0].base]}")
        axes.legend(loc="best")
        for place, cell in zip("ab", plan.pictures(name), strict=True):
            _show(cell, panels[place], results)
    return figure


def _show(cell: Cell, axes: Axes, results: Results) -> None:
    """A mosaic of the pictures of a cell."""
    titles = {
        "samples": "samples of the RBM",
        "annealed": f"annealing model, {cell.steps or 0:,} steps",
        "training": "training examples",
    }
    axes.set_axis_off()
    axes.set_title(titles[cell.method])
    record = results.read(cell)
    if record is not None:
        pictures, shape = pictures_of(record["result"])
        across = 5 if len(pictures) == 10 else 8
        axes.imshow(mosaic(pictures, shape, across), cmap="gray", interpolation="nearest")


def _plot(curve: Curve, axes: Axes, style: dict[str, Any], least: int = 0) -> None:
    """The points from so many steps on; all of them where there are no others."""
    points = [point for point in curve.points if point[0] >= least] or curve.points
    steps = [k for k, _ in points]
    values = [estimate.value for _, estimate in points]
    errors = [_SIGMAS * (finite_or_none(estimate.stderr) or 0.0) for _, estimate in points]
    axes.errorbar(steps, values, yerr=errors, **style)
    axes.set_xscale("log")
    powers = [k for k in steps if str(k).strip("0") == "1"]
    axes.set_xticks(powers if len(powers) > 1 else steps)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("annealing steps")
