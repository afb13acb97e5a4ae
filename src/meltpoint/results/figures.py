"""Charts and pictures drawn with Matplotlib, fit for print: legible in grey. Only what draws imports this."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from meltpoint.errors import InputError, shortened
from meltpoint.extras import require
from meltpoint.formats.atomic import atomic_write
from meltpoint.results.charts import Axis, Band, Bars, Chart, Line, Mark, Points, Role, can_be_drawn
from meltpoint.results.document import Picture
from meltpoint.results.shown import image_side, tiled

mpl = require("matplotlib", "figures")
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

FIGURE_FORMATS = (".png", ".pdf", ".svg")

_ROLES: dict[Role, dict[str, Any]] = {
    "conservative": {"color": "#0b6fa4", "marker": "o", "linestyle": "-"},
    "optimistic": {"color": "#d1550f", "marker": "^", "linestyle": "--"},
    "exact": {"color": "#222222", "marker": "D", "linestyle": ":"},
}
_HATCHES = {"conservative": "////", "optimistic": "", "exact": ""}
_LINES = {"dashed": {"linestyle": ":", "lw": 1.2}, "thin": {"lw": 1.2}, "thick": {"lw": 5, "alpha": 0.35}}
_HEADROOM = 1.35  # of the tallest bar, for the legend
_LONG_NAMES = 60  # characters of all names below an axis, from which on they are turned
_LONGEST_NAME = 24
_PANEL_WIDTH, _TITLE = 3.5, 0.4  # inches
_DPI = 200
_USUAL_HEIGHT, _PIXELS = 270, 96  # of a chart's height, and how many are an inch
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2.5,
    "figure.constrained_layout.use": True,
}


class NotebookFigure(Figure):
    """A figure that a notebook shows by itself, at half its resolution, without pyplot and its settings."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=_DPI)
        width, height = self.get_size_inches()
        return picture.getvalue(), {"width": round(width * _DPI / 2), "height": round(height * _DPI / 2)}


def draw(panels: Sequence[Chart | Picture]) -> Figure:
    """A figure of charts and pictures side by side."""
    width = max(5.0, _PANEL_WIDTH * len(panels))
    pixels = max(getattr(panel, "height", _USUAL_HEIGHT) for panel in panels)
    height = round(_TITLE + pixels / _PIXELS, 2)  # whole pixels in notebooks
    with mpl.rc_context(_STYLE):  # pyplot and its settings stay untouched
        figure = NotebookFigure(figsize=(width, height))
        for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
            if isinstance(panel, Chart):
                _draw_chart(panel, axes)
            else:
                _draw_picture(panel, axes)
        # Ticks are made when they are first drawn, in the style that holds then.
        figure.draw_without_rendering()
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure atomically."""
    if path.suffix.lower() not in FIGURE_FORMATS:
        raise InputError(
            found=f"{path} for a figure",
            expected="a name that ends in .png, .pdf or .svg",
            remedy="rename it",
        )
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=_DPI)


def _draw_chart(chart: Chart, axes: Axes) -> None:
    for mark in chart.marks:
        _draw_mark(mark, chart, axes)
    if not chart.marks:
        axes.text(0.5, 0.5, chart.description, ha="center", transform=axes.transAxes)
    axes.set_title(chart.title)
    if chart.x.log:
        axes.set_xscale("log")
        axes.set_xticks([], minor=True)
    elif not chart.x.places:
        axes.ticklabel_format(axis="x", useOffset=False, style="plain")  # readers overlook an offset
    _set_axis(chart.x, axes, "x")
    _set_axis(chart.y, axes, "y")
    if any(mark.label for mark in chart.marks):
        if any(isinstance(mark, Bars) for mark in chart.marks):
            axes.set_ylim(top=_HEADROOM * chart.y.high)
        axes.legend(loc="best")
    if chart.y.places:
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)


def _set_axis(axis: Axis, axes: Axes, which: str) -> None:
    axes.set(**{f"{which}label": axis.label, f"{which}lim": (axis.low, axis.high)})
    if axis.places:
        names = [shortened(text, _LONGEST_NAME) for _, text in axis.places]
        turned = which == "x" and max(map(len, names)) * len(names) > _LONG_NAMES
        turn = {"rotation": 30, "ha": "right"} if turned else {}
        (axes.set_xticks if which == "x" else axes.set_yticks)([at for at, _ in axis.places], names, **turn)


def _draw_mark(mark: Mark, chart: Chart, axes: Axes) -> None:
    style = _ROLES[mark.role]
    color = style["color"]
    match mark:
        case Points():
            x, y = np.asarray(mark.x, np.float64), np.asarray(mark.y, np.float64)
            known = can_be_drawn(x) & can_be_drawn(y)
            error = {} if mark.error is None else {f"{mark.along}err": np.asarray(mark.error)[known]}
            look = {**style, "linestyle": style["linestyle"] if mark.joined else "", "lw": 1.4}
            if not mark.marked:
                look |= {"marker": "", "linestyle": "-"}
            elif mark.small:
                look |= {"ms": 3, "elinewidth": 0.7, "capsize": 0}
            axes.errorbar(x[known], y[known], **error, **look, label=mark.label)
        case Line():
            ends = [
                [min(max(value, axis.low), axis.high) for value in pair]
                for pair, axis in zip(zip(mark.start, mark.end, strict=True), (chart.x, chart.y), strict=True)
            ]
            if not np.isnan(ends).any():
                axes.plot(*ends, color=color, label=mark.label, **_LINES[mark.style])
            if mark.caps:
                caps = [end for end in (mark.start, mark.end) if all(map(math.isfinite, end))]
                axes.plot([x for x, _ in caps], [y for _, y in caps], color=color, marker="|", ms=10, ls="")
        case Bars():
            look = {"facecolor": color, "edgecolor": color, "alpha": 0.45, "hatch": _HATCHES[mark.role]}
            axes.stairs(mark.heights, mark.edges, fill=True, label=mark.label, **look)
        case Band():
            low, high = (np.where(can_be_drawn(end), end, np.nan) for end in (mark.low, mark.high))
            look = {"color": color, "alpha": 0.25, "lw": 0.8, "hatch": _HATCHES[mark.role] or None}
            axes.fill_between(mark.x, low, high, label=mark.label, **look)


def _draw_picture(picture: Picture, axes: Axes) -> None:
    """Squares of units side by side; states of others as rows."""
    square = image_side(picture.states.shape[1]) is not None
    shown = tiled(picture.states) if square else picture.states
    axes.imshow(shown, cmap="gray" if square else "gray_r", aspect="equal" if square else "auto")
    axes.set_title(picture.description)
    axes.set_yticks([])
    if square:
        axes.axis("off")
    else:
        axes.set_xlabel("visible unit")
