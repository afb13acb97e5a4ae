"""Charts as SVG that takes its colours from the page."""

import math
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.results.charts import FEW, Axis, Chart, Mark
from meltpoint.results.elements import Html, element, join, typeset

_WIDTH = 480
_RIGHT, _TOP, _BOTTOM = 16, 12, 42
_MOST_TICKS = 6
_MARK, _SMALL_MARK = 4.0, 2.5
_LETTER = 7.2


def chart_svg(chart: Chart, prefix: str = "") -> Html:
    """The chart as an image with a title and a description; `prefix` makes its ids unique."""
    name, plane = prefix + chart.name, _Plane(chart)
    return join(
        _legend(chart),
        element(
            "svg",
            element("title", chart.title, id=f"{name}-title"),
            element("desc", typeset(chart.description), id=f"{name}-desc"),
            *plane.axes(),
            *(shape for mark in chart.marks for shape in plane.shapes(mark)),
            viewBox=f"0 0 {_WIDTH} {chart.height}",
            role="img",
            aria_labelledby=f"{name}-title {name}-desc",
            class_="chart",
        ),
    )


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """Places on an axis with their texts: named ones, or a few round numbers."""
    if axis.places:
        return list(axis.places)
    least = (axis.high - axis.low) / (_MOST_TICKS - 1)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= least * (1 - 1e-9))
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    return [(step * k, _tick_text(step * k, step)) for k in range(first, last + 1)]


def _tick_text(value: float, step: float) -> str:
    """A tick's number, with the decimals that tell it from its neighbours."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    if step < 1 and round(step, digits) != round(step, 12):
        digits += 1
    value = round(value, digits) + 0.0
    return (f"{value:,.{digits}f}" if abs(value) < 1e7 else f"{value:.3g}").replace("-", "\N{MINUS SIGN}")


class _Plane:
    """A chart's axes in the coordinates of the drawing."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        longest = max((len(text) for _, text in ticks(chart.y)), default=0)
        # Room for the texts of the ticks, and for the label where there is one.
        self.left = min(0.45 * _WIDTH, (30 if chart.y.label else 14) + _LETTER * longest)
        self.bottom = chart.height - _BOTTOM
        self.x = partial(_places, chart.x, self.left, _WIDTH - _RIGHT)
        self.y = partial(_places, chart.y, self.bottom, _TOP)

    def axes(self) -> Iterator[Html]:
        x, y, right, bottom = self.chart.x, self.chart.y, _WIDTH - _RIGHT, self.bottom
        for value, text in ticks(x):
            at = self.x(value)
            yield _segment(at, _TOP, at, bottom, "grid")
            yield element("text", text, x=at, y=bottom + 16, text_anchor="middle")
        for value, text in ticks(y):
            at = self.y(value)
            if not self.chart.in_rows:
                yield _segment(self.left, at, right, at, "grid")
            yield element("text", text, x=self.left - 6, y=at + 4, text_anchor="end")
        yield _segment(self.left, bottom, right, bottom, "axis")
        across, up = (self.left + right) / 2, (_TOP + bottom) / 2
        yield element("text", x.label, x=across, y=self.chart.height - 8, text_anchor="middle")
        if y.label:
            yield element("text", y.label, x=12, y=up, transform=f"rotate(-90 12 {up})", text_anchor="middle")

    def shapes(self, mark: Mark) -> Iterator[Html]:
        x, y, errors = self.chart.places(mark)
        places = list(zip(self.x(x).tolist(), self.y(y).tolist(), strict=True))
        if mark.kind == "area":
            yield element("polygon", points=_path(places), class_=f"area {mark.role}")
        elif mark.kind != "points":
            yield element("polyline", points=_path(places), class_=f"line {mark.kind} {mark.role}")
        else:
            along_x, size = self.chart.in_rows, _MARK if len(x) <= FEW else _SMALL_MARK
            for place, x_k, y_k, error in zip(places, x, y, errors, strict=True):
                ends = np.array([-error, error])
                (x1, x2), (y1, y2) = self.x(x_k + ends * along_x), self.y(y_k + ends * (not along_x))
                if math.hypot(x2 - x1, y2 - y1) > 2.5 * size:  # hidden by the mark otherwise
                    yield _segment(x1, y1, x2, y2, f"error {mark.role}")
                said = f"{x_k:,.6g}" if along_x else f"{x_k:,.6g}, {y_k:,.6g}"
                said += f" ± {error:.2g}" if error > 0 else ""
                yield _shape(*place, mark.role, size, element("title", typeset(said)))


def _places(axis: Axis, start: float, end: float, values: ArrayLike) -> np.ndarray:
    """Where values lie between the start and the end of an axis."""
    low, high, values = axis.low, axis.high, np.asarray(values, np.float64)
    if axis.log:
        low, high, values = math.log(low), math.log(high), np.log(values)
    return np.round(start + np.clip((values - low) / (high - low), 0.0, 1.0) * (end - start), 1)


def _path(places: Iterable[tuple[float, float]]) -> Html:
    return Html(" ".join(f"{x},{y}" for x, y in places))


def _segment(x1: object, y1: object, x2: object, y2: object, class_: str) -> Html:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _shape(x: float, y: float, role: str, size: float, hover: Html | None = None) -> Html:
    """A circle, a triangle or a diamond: what a mark stands for is seen without its colour too."""
    if role == "conservative":
        return element("circle", hover, cx=x, cy=y, r=size, class_=role)
    wide = 1.1 * size
    corners = [(x, y - 1.2 * size), (x - wide, y + size), (x + wide, y + size)]
    if role == "exact":
        corners = [(x, y - wide), (x + wide, y), (x, y + wide), (x - wide, y)]
    return element(
        "polygon", hover, points=_path((round(a, 1), round(b, 1)) for a, b in corners), class_=role
    )


def _legend(chart: Chart) -> Html | None:
    """What the marks with a label are, each with a sample of it."""
    entries = []
    for mark in (mark for mark in chart.marks if mark.label):
        if mark.kind == "area":
            sample = element("rect", x=0, y=0, width=14, height=14, class_=f"area {mark.role}")
        elif mark.kind == "points":
            sample = _shape(7, 7, mark.role, 5)
        else:
            sample = _segment(0, 7, 14, 7, f"line {mark.kind} {mark.role}")
        drawn = element("svg", sample, viewBox="0 0 14 14", aria_hidden="true", class_="chart sample")
        entries.append(element("span", drawn, typeset(mark.label)))
    return element("p", *entries, class_="legend") if entries else None
