"""Charts and pictures drawn with Matplotlib, fit for print: legible in grey. Only what draws imports this."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from meltpoint.errors import InputError
from meltpoint.extras import require
from meltpoint.formats.atomic import atomic_write
from meltpoint.progress import notebook
from meltpoint.results.charts import FEW, Chart, Mark
from meltpoint.results.document import Picture
from meltpoint.results.shown import image_side, tiled

mpl = require("matplotlib", "figures")
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

FIGURE_FORMATS = (".png", ".pdf", ".svg")

_ROLES = {  # colour, shape, hatch
    "conservative": ("#0b6fa4", "o", "////"),
    "optimistic": ("#d1550f", "^", None),
    "exact": ("#222222", "D", None),
}
_LINES: dict[str, dict[str, Any]] = {
    "solid": {"lw": 1.4},
    "dashed": {"lw": 1.3, "ls": "--"},
    "thick": {"lw": 5, "alpha": 0.35, "solid_capstyle": "butt"},
}
_HEADROOM = 1.35  # of the tallest bar, for the legend
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
    """A figure that a notebook shows by itself, at half its resolution, without pyplot and its settings.

    Like those of pyplot it is shown after the cell that made it, if it was not its result: `report.plot();`.
    """

    is_shown = False

    def show_after_cell(self, shell: Any) -> None:  # noqa: ANN401
        def show() -> None:
            shell.events.unregister("post_execute", show)
            if not self.is_shown:
                from IPython.display import display  # pyright: ignore[reportMissingImports]

                display(self)

        shell.events.register("post_execute", show)

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        self.is_shown, picture = True, io.BytesIO()
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
    shell = notebook()
    if shell is not None:
        figure.show_after_cell(shell)
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
    if chart.x.log:
        axes.set_xscale("log")
    for mark in chart.marks:
        _draw_mark(mark, chart, axes)
    if not chart.marks:
        axes.text(0.5, 0.5, chart.description, ha="center", transform=axes.transAxes)
    axes.set_title(chart.title)
    x, y = chart.x, chart.y
    labelled = any(mark.label for mark in chart.marks)
    bars = y.low == 0 and any(mark.kind == "area" for mark in chart.marks)
    top = y.low + (_HEADROOM if labelled and bars else 1.0) * (y.high - y.low)
    axes.set(xlabel=x.label, ylabel=y.label, xlim=(x.low, x.high), ylim=(y.low, top))
    if x.places:
        axes.set_xticks([], minor=True)
        axes.set_xticks(*zip(*x.places, strict=True))
    else:
        axes.ticklabel_format(axis="x", useOffset=False, style="plain")  # readers overlook an offset
    if labelled:
        axes.legend(loc="best")
    if chart.in_rows:
        axes.set_yticks(*zip(*y.places, strict=True))
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)


def _draw_mark(mark: Mark, chart: Chart, axes: Axes) -> None:
    x, y, errors = chart.places(mark)
    color, marker, hatch = _ROLES[mark.role]
    if mark.kind == "area":
        axes.fill(x, y, color=color, alpha=0.3, lw=0.8, hatch=hatch, label=mark.label)
    elif mark.kind == "points":
        look = {} if len(x) <= FEW else {"ms": 3, "elinewidth": 0.7, "capsize": 0}
        look["xerr" if chart.in_rows else "yerr"] = errors
        axes.errorbar(x, y, color=color, marker=marker, ls="", lw=1.4, label=mark.label, **look)
    else:
        axes.plot(x, y, color=color, label=mark.label, **_LINES[mark.kind])


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
