"""Charts as SVG that takes its colours from the page."""

import math
from collections.abc import Iterator

import numpy as np

from meltpoint.results.charts import Axis, Band, Bars, Chart, Line, Mark, Points, can_be_drawn
from meltpoint.results.elements import Html, element, join, typeset

_WIDTH = 480
_RIGHT, _TOP, _BOTTOM = 16, 12, 42
_MOST_TICKS = 6
_MARK, _SMALL_MARK, _CAP = 4.0, 2.5, 8.0
_LETTER = 7.2


def chart_svg(chart: Chart, prefix: str = "") -> Html:
    """The chart as an image with a title and a description; `prefix` makes its ids unique."""
    return join(_legend(chart), _Drawing(chart).render(prefix + chart.name))


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


class _Drawing:
    """A chart's axes in the coordinates of the drawing."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        longest = max((len(text) for _, text in ticks(chart.y)), default=0)
        # Room for the texts of the ticks, and for the label where there is one.
        self.left = min(0.45 * _WIDTH, (30 if chart.y.label else 14) + _LETTER * longest)
        self.bottom = chart.height - _BOTTOM

    def px(self, value: float) -> float:
        return round(self.left + _share(self.chart.x, value) * (_WIDTH - self.left - _RIGHT), 1)

    def py(self, value: float) -> float:
        return round(self.bottom - _share(self.chart.y, value) * (self.bottom - _TOP), 1)

    def render(self, name: str) -> Html:
        chart = self.chart
        return element(
            "svg",
            element("title", chart.title, id=f"{name}-title"),
            element("desc", typeset(chart.description), id=f"{name}-desc"),
            *self._axes(),
            *(shape for mark in chart.marks for shape in self._mark(mark)),
            viewBox=f"0 0 {_WIDTH} {chart.height}",
            role="img",
            aria_labelledby=f"{name}-title {name}-desc",
            class_="chart",
        )

    def _axes(self) -> Iterator[Html]:
        x, y, right = self.chart.x, self.chart.y, _WIDTH - _RIGHT
        for value, text in ticks(x):
            at = self.px(value)
            yield element("line", x1=at, x2=at, y1=_TOP, y2=self.bottom, class_="grid")
            yield element("text", text, x=at, y=self.bottom + 16, text_anchor="middle")
        for value, text in ticks(y):
            at = self.py(value)
            if not y.places:
                yield element("line", x1=self.left, x2=right, y1=at, y2=at, class_="grid")
            yield element("text", text, x=self.left - 6, y=at + 4, text_anchor="end")
        yield element("line", x1=self.left, x2=right, y1=self.bottom, y2=self.bottom, class_="axis")
        middle = (self.left + right) / 2, (_TOP + self.bottom) / 2
        yield element("text", x.label, x=middle[0], y=self.chart.height - 8, text_anchor="middle")
        if y.label:
            turned = f"rotate(-90 12 {middle[1]})"
            yield element("text", y.label, x=12, y=middle[1], transform=turned, text_anchor="middle")

    def _mark(self, mark: Mark) -> Iterator[Html]:
        match mark:
            case Points():
                yield from self._points(mark)
            case Line():
                yield from self._line(mark)
            case Bars():
                for left, right, height in zip(mark.edges[:-1], mark.edges[1:], mark.heights, strict=True):
                    if height > 0:
                        yield self._bar(left, right, height, mark.role)
            case Band():
                known = can_be_drawn(mark.low) & can_be_drawn(mark.high)
                x = np.concatenate([mark.x[known], mark.x[known][::-1]])
                y = np.concatenate([mark.low[known], mark.high[known][::-1]])
                places = [(self.px(at), self.py(value)) for at, value in zip(x, y, strict=True)]
                yield element("polygon", points=_path(places), class_=f"band {mark.role}")

    def _points(self, mark: Points) -> Iterator[Html]:
        x, y = np.asarray(mark.x, np.float64), np.asarray(mark.y, np.float64)
        known = np.flatnonzero(can_be_drawn(x) & can_be_drawn(y))
        if mark.joined:
            places = [(self.px(x[k]), self.py(y[k])) for k in known]
            dash = " dashed" if mark.role == "optimistic" and mark.marked else ""
            yield element("polyline", points=_path(places), class_=f"line {mark.role}{dash}")
        if not mark.marked:
            return
        errors = np.zeros(len(x)) if mark.error is None else np.asarray(mark.error)
        size = _SMALL_MARK if mark.small else _MARK
        for k in known:
            across, up = (errors[k], 0.0) if mark.along == "x" else (0.0, errors[k])
            ends = self.px(x[k] - across), self.py(y[k] - up), self.px(x[k] + across), self.py(y[k] + up)
            if math.dist(ends[:2], ends[2:]) > 2.5 * size:  # hidden by the mark otherwise
                yield _segment(*ends, f"error {mark.role}")
            yield _shape(self.px(x[k]), self.py(y[k]), mark.role, size)

    def _line(self, line: Line) -> Iterator[Html]:
        if np.isnan([line.start, line.end]).any():
            return
        start, end = ((self.px(x), self.py(y)) for x, y in (line.start, line.end))
        yield _segment(*start, *end, f"{line.style} {line.role}")
        if line.caps:
            for (x, y), place in ((start, line.start), (end, line.end)):
                if can_be_drawn(place).all():
                    yield _segment(x, y - _CAP, x, y + _CAP, f"error {line.role}")

    def _bar(self, left: float, right: float, height: float, role: str) -> Html:
        x, y = self.px(left), self.py(height)
        width, tall = round(self.px(right) - x, 1), round(self.bottom - y, 1)
        return element("rect", x=x, y=y, width=width, height=tall, class_=f"bar {role}")


def _share(axis: Axis, value: float) -> float:
    """Where a value lies on an axis, from 0 to 1; what is outside lies at the edge."""
    if axis.log:
        low, high = math.log(axis.low), math.log(axis.high)
        value = math.log(value) if value > 0 else -math.inf
    else:
        low, high = axis.low, axis.high
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _path(places: list[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in places)


def _segment(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _shape(x: float, y: float, role: str, size: float) -> Html:
    """A circle, a triangle or a diamond: what a mark stands for is seen without its colour too."""
    if role == "conservative":
        return element("circle", cx=x, cy=y, r=size, class_=role)
    wide = round(1.1 * size, 1)
    corners = [(x, round(y - 1.2 * size, 1)), (x - wide, y + size), (x + wide, y + size)]
    if role == "exact":
        corners = [(x, y - wide), (x + wide, y), (x, y + wide), (x - wide, y)]
    return element("polygon", points=_path([(round(a, 1), round(b, 1)) for a, b in corners]), class_=role)


def _legend(chart: Chart) -> Html | None:
    """What the marks with a label are, each with a sample of it."""
    entries = []
    for mark in chart.marks:
        if not mark.label:
            continue
        match mark:
            case Points(marked=True):
                sample = _shape(7, 7, mark.role, 5)
            case Points() | Line():
                style = mark.style if isinstance(mark, Line) else "line"
                sample = _segment(0, 7, 14, 7, f"{style} {mark.role}")
            case Bars() | Band():
                sample = element("rect", x=0, y=0, width=14, height=14, class_=f"bar {mark.role}")
        drawn = element("svg", sample, viewBox="0 0 14 14", aria_hidden="true", class_="chart sample")
        entries.append(element("span", drawn, typeset(mark.label)))
    return element("p", *entries, class_="legend") if entries else None
