"""The paper's figures, from finished cells: their points, and the drawings, fit for print and legible in grey."""

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import meltpoint as mp
from reproduce.cells import CURVES, Cell, Plan
from reproduce.models import SMALL, Bits, PaperModel
from reproduce.results import Results, write_file
from reproduce.tables import csv_numbers, csv_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
_SIGMAS = 2
_ALL = "log-likelihood-rbms"
_ENOUGH = 100  # steps, from which on a deep model's estimates are shown: those of fewer would hide all else


class Curve(NamedTuple):
    """Estimates of one model by one method, from few steps to many; only those that are finished."""

    model: PaperModel
    base: str
    method: str
    points: list[tuple[int, mp.Estimate]]

    @property
    def title(self) -> str:
        return f"{self.model.label}, {_BASES[self.base]}"


def curves_of(name: str, plan: Plan, results: Results) -> list[Curve]:
    found = []
    for model, base, methods in CURVES[name]:
        for method in methods:
            points = [(k, results.estimate(plan.cell(model, method, base, k))) for k in plan.profile.curve]
            found.append(Curve(model, base, method, [(k, e) for k, e in points if e is not None]))
    return found


def write_figure(name: str, plan: Plan, results: Results, folder: Path) -> list[Path]:
    """Write a figure as PDF and PNG and its points as CSV and JSON; gives the paths."""
    objects, lines = [], [["model", "base", "method", "steps", "value", "stderr"]]
    for curve in curves_of(name, plan, results):
        words = {"model": curve.model.name, "base": curve.base, "method": curve.method.upper()}
        points = [{"steps": steps, **estimate.to_dict()} for steps, estimate in curve.points]
        objects.append({**words, "points": points})
        lines += [[*words.values(), str(steps), *csv_numbers(e)] for steps, e in curve.points]
    figure = draw(name, plan, results)
    return [
        write_file(folder / f"{name}.csv", csv_text(lines)),
        write_file(folder / f"{name}.json", json.dumps(objects, indent=1, allow_nan=False) + "\n"),
        *(write_file(folder / f"{name}.{form}", image(figure, form)) for form in ("pdf", "png")),
    ]


def image(figure: "Figure", form: str = "png") -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=form, dpi=200)
    return file.getvalue()


def draw(name: str, plan: Plan, results: Results) -> "Figure":
    """The figure of that name, from the cells that are finished."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.style import context
    except ModuleNotFoundError:
        remedy = "install it: pip install 'meltpoint[plot]'"
        raise mp.InputError(found="no matplotlib", expected="what draws figures", remedy=remedy) from None
    curves = [curve for curve in curves_of(name, plan, results) if curve.points]
    pictures, panels = plan.pictures(name), list(dict.fromkeys(curve.title for curve in curves)) or [""]
    with context(Path(__file__).with_name("paper.mplstyle")):
        figure = Figure(figsize=(6.4 if name == _ALL else 7.0, 3.4 if pictures or name == _ALL else 3.0))
        if name == _ALL:
            first = figure.subplots()
            for curve, look in zip(curves, _MODELS, strict=False):
                _plot(curve, first, {**look, "label": curve.model.label})
            first.set_title("RAISE, uniform base; bars: ± 2 standard errors")
            _legend(first, loc="center left", bbox_to_anchor=(1.0, 0.5))
        elif pictures:
            places = figure.subplot_mosaic("ca;cb", width_ratios=(1.45, 1))
            first = places["c"]
            exact = plan.cell(SMALL[0], "exact") if name == "cd1-20-dbr" else None
            _panel(curves, first, exact=results.estimate(exact) if exact else None)
            _legend(first)
            for place, cell in zip("ab", pictures, strict=True):
                _show(cell, places[place], results)
        else:
            deep = name == "dbn"
            axes = figure.subplots(1, len(panels), sharey=not deep, squeeze=False)[0]
            first = axes[0]
            for title, each in zip(panels, axes, strict=True):
                _panel([c for c in curves if c.title == title], each, _ENOUGH if deep else 0)
                if deep or each is axes[-1]:
                    _legend(each)
        first.set_ylabel("mean test log-probability, nats")
        figure.draw_without_rendering()  # ticks are made when they are first drawn, in the style that holds then
    return figure


def pictures_of(result: dict[str, Any]) -> tuple[Bits, tuple[int, int]]:
    """The pictures (picture, pixel) that a cell's result holds as letters, and their shape."""
    rows, columns = result["image_shape"]
    packed = np.array([list(bytes.fromhex(letters)) for letters in result["pictures"]], np.uint8)
    return np.unpackbits(packed, axis=1, count=rows * columns), (rows, columns)


def _panel(curves: Sequence[Curve], axes: "Axes", least: int = 0, exact: mp.Estimate | None = None) -> None:
    for curve in curves:
        _plot(curve, axes, _METHODS[curve.method], least)
    if exact is not None:
        shown = f"{exact.value:.2f}".replace("-", "\N{MINUS SIGN}")
        axes.axhline(exact.value, color="#222222", linestyle=":", label=f"exact, {shown}")
    if curves:
        axes.set_title(curves[0].title)


def _legend(axes: "Axes", **where: Any) -> None:
    if axes.get_legend_handles_labels()[0]:  # of no curves Matplotlib warns
        axes.legend(**{"loc": "best", **where})


def _show(cell: Cell, axes: "Axes", results: Results) -> None:
    titles = {
        "samples": "samples of the RBM",
        "annealed": f"annealing model, {cell.steps or 0:,} steps",
        "training": "training examples",
    }
    axes.set_axis_off()
    axes.set_title(titles[cell.method])
    record = results.read(cell)
    if record is not None:
        pictures, (rows, columns) = pictures_of(record["result"])
        across = 5 if len(pictures) == 10 else 8
        tiles = np.where(pictures, 0, 255).reshape(-1, across, rows, columns)
        framed = np.pad(tiles, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=190)
        mosaic = framed.transpose(0, 2, 1, 3).reshape(-1, across * (columns + 1))
        mosaic = np.pad(mosaic, ((1, 0), (1, 0)), constant_values=190)
        axes.imshow(mosaic, cmap="gray", interpolation="nearest")


def _plot(curve: Curve, axes: "Axes", style: dict[str, Any], least: int = 0) -> None:
    """The points from so many steps on; all of them where there are no others."""
    points = [point for point in curve.points if point[0] >= least] or curve.points
    steps = [k for k, _ in points]
    errors = [_SIGMAS * e.stderr if math.isfinite(e.stderr) else 0.0 for _, e in points]
    axes.errorbar(steps, [e.value for _, e in points], yerr=errors, **style)
    axes.set_xscale("log")
    powers = [k for k in steps if str(k).strip("0") == "1"]
    axes.set_xticks(powers if len(powers) > 1 else steps)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("annealing steps")
