"""Charts as SVG that takes its colours from the page: axes with ticks, and what is drawn between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.results.html.elements import Html, element, escaped, join

WIDTH = 480
_RIGHT, _TOP, _BOTTOM = 16, 12, 42
_MOST_TICKS = 6
_LARGEST = 1e12
_ROUNDING = 1e-9
_MINUS = "\N{MINUS SIGN}"


def can_be_drawn(values: ArrayLike) -> NDArray[np.bool_]:
    """Which values can be drawn: those that are numbers, and not so large that nothing else would be seen."""
    return np.abs(np.asarray(values, np.float64)) < _LARGEST  # NaN is not


def differ(low: float, high: float) -> bool:
    """Whether two ends are farther apart than rounding."""
    return high - low > _ROUNDING * max(1.0, abs(low), abs(high))


@dataclass
class Axis:
    """Values from `low` to `high`, with a label; `whole` if only whole numbers mean something."""

    low: float
    high: float
    label: str
    whole: bool = False

    @classmethod
    def around(cls, values: Sequence[float] | NDArray[np.floating], label: str) -> "Axis":
        """An axis with room around the finite ones of these values."""
        finite = np.asarray(values, np.float64).ravel()
        finite = finite[can_be_drawn(finite)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        room = 0.06 * (high - low) if differ(low, high) else max(0.5, 0.01 * abs(low))
        return cls(low - room, high + room, label)

    @property
    def step(self) -> float:
        """The distance of ticks, a round number."""
        step = _round_step((self.high - self.low) / (_MOST_TICKS - 1))
        return max(1.0, step) if self.whole else step

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1; what is outside lies at the edge."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def ticks(self) -> list[float]:
        """Round numbers on the axis."""
        first = math.ceil(self.low / self.step - 1e-9)
        return [self.step * k for k in range(first, math.floor(self.high / self.step + 1e-9) + 1)]

    def tick_text(self, value: float) -> str:
        """A tick's number, with the decimals that its neighbours need."""
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        if self.step < 1 and round(self.step, digits) != round(self.step, 12):
            digits += 1
        text = f"{abs(value):,.{digits}f}" if abs(value) < 1e7 else f"{abs(value):.3g}"
        return _MINUS + text if value < 0 and float(text.replace(",", "")) != 0 else text


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= least * (1 - 1e-9))


@dataclass
class Chart:
    """A chart between two axes; `y` without ticks where rows have names of their own."""

    x: Axis
    y: Axis
    height: int = 270
    y_ticks: bool = True
    left: float = 0.0
    marks: list[Html] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.left:  # room for the longest number beside the label
            self.left = 30 + 7.2 * max(len(self.y.tick_text(tick)) for tick in self.y.ticks())

    def px(self, value: float) -> float:
        """Horizontal position of a value."""
        return round(self.left + self.x.share(value) * (WIDTH - self.left - _RIGHT), 1)

    def py(self, value: float) -> float:
        """Vertical position of a value."""
        return round(self.height - _BOTTOM - self.y.share(value) * (self.height - _TOP - _BOTTOM), 1)

    def line(self, xs: Sequence[float], ys: Sequence[float], class_: str) -> None:
        """A line through points; those that are not finite are left out."""
        points = " ".join(
            f"{self.px(x)},{self.py(y)}" for x, y in zip(xs, ys, strict=True) if can_be_drawn([x, y]).all()
        )
        self.marks.append(element("polyline", points=points, class_=f"line {class_}"))

    def segment(self, start: tuple[float, float], end: tuple[float, float], class_: str) -> None:
        """A straight line between two points; what lies outside the axes ends at the edge."""
        if np.isnan([start, end]).any():
            return
        self.marks.append(
            element(
                "line",
                x1=self.px(start[0]),
                y1=self.py(start[1]),
                x2=self.px(end[0]),
                y2=self.py(end[1]),
                class_=class_,
            )
        )

    def point(self, x: float, y: float, class_: str, shape: str = "circle", size: float = 4.0) -> None:
        """A mark: a circle, or a triangle, so that colour is not alone in telling two kinds apart."""
        if not can_be_drawn([x, y]).all():
            return
        self.marks.append(_mark(self.px(x), self.py(y), class_, shape, size))

    def bar(self, low: float, high: float, y: float, class_: str) -> None:
        """A bar of a histogram, from 0 to y."""
        left, right, top = self.px(low), self.px(high), self.py(y)
        self.marks.append(
            element(
                "rect",
                x=left,
                y=top,
                width=round(right - left, 1),
                height=round(self.py(self.y.low) - top, 1),
                class_=f"bar {class_}",
            )
        )

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> None:
        """A text at a position of the drawing, not of the axes."""
        self.marks.append(
            element("text", text, x=round(x, 1), y=round(y, 1), text_anchor=anchor, class_="label")
        )

    def render(self, name: str, title: str, description: str) -> Html:
        """The chart as an image with a title and a description; `name` makes its ids unique."""
        bottom, right = self.height - _BOTTOM, WIDTH - _RIGHT
        parts: list[Html] = []
        for tick in self.x.ticks():
            x = self.px(tick)
            parts.append(element("line", x1=x, x2=x, y1=_TOP, y2=bottom, class_="grid"))
            parts.append(element("text", self.x.tick_text(tick), x=x, y=bottom + 16, text_anchor="middle"))
        if self.y_ticks:
            for tick in self.y.ticks():
                y = self.py(tick)
                parts.append(element("line", x1=self.left, x2=right, y1=y, y2=y, class_="grid"))
                parts.append(
                    element("text", self.y.tick_text(tick), x=self.left - 6, y=y + 4, text_anchor="end")
                )
        parts.append(element("line", x1=self.left, x2=right, y1=bottom, y2=bottom, class_="axis"))
        middle = (self.left + right) / 2
        parts.append(element("text", self.x.label, x=middle, y=self.height - 8, text_anchor="middle"))
        if self.y.label:
            turned = f"rotate(-90 12 {(_TOP + bottom) / 2})"
            parts.append(
                element(
                    "text", self.y.label, x=12, y=(_TOP + bottom) / 2, transform=turned, text_anchor="middle"
                )
            )
        drawn = element(
            "svg",
            element("title", title, id=f"{name}-title"),
            element("desc", description, id=f"{name}-desc"),
            *parts,
            *self.marks,
            viewBox=f"0 0 {WIDTH} {self.height}",
            role="img",
            aria_labelledby=f"{name}-title {name}-desc",
            class_="chart",
        )
        return join(_legend(self.legend), drawn)


def _mark(x: float, y: float, class_: str, shape: str, size: float) -> Html:
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=size, class_=class_)
    points = (
        f"{x},{y - 1.2 * size:.1f} {x - 1.1 * size:.1f},{y + size:.1f} {x + 1.1 * size:.1f},{y + size:.1f}"
    )
    return element("polygon", points=points, class_=class_)


def _legend(entries: Sequence[tuple[str, str]]) -> Html | None:
    if not entries:
        return None
    shown = [
        element(
            "span",
            element(
                "svg",
                element("rect", x=0, y=0, width=14, height=14, class_=f"swatch {class_}"),
                viewBox="0 0 14 14",
                aria_hidden="true",
            ),
            escaped(label),
        )
        for class_, label in entries
    ]
    return element("p", *shown, class_="legend")
