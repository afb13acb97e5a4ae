"""Charts as specifications: axes, and the marks between them. `svg` draws them on pages, `figures` with Matplotlib."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.errors import shortened
from meltpoint.layers.unit import Floats
from meltpoint.results.words import interval, number
from meltpoint.statistics.estimate import Estimate

Role: TypeAlias = Literal["conservative", "optimistic", "exact"]
"""What a mark stands for: renderers give each a colour, a shape and a hatch, so that colour never stands alone."""

Kind: TypeAlias = Literal["points", "solid", "dashed", "thick", "area"]
"""Points with error bars, lines of a style through their places, and the area inside of an outline."""

SIGMAS = 2.0
"""Standard errors that error bars show."""

FEW = 30
"""Points of usual size; more of them are small."""

_LARGEST = 1e12
_ROUNDING = 1e-9
_ROOM = 0.06  # around what is drawn, as a fraction of it
_BINS = 36
_MOST_BINS = 30
_MOST_POINTS = 600
_CURVE = 160  # points of a curve
_HEIGHT, _ROW_HEIGHT, _ROWS_MARGIN = 270, 30, 54  # of charts and of rows
_LONGEST_NAME, _LETTERS = 24, 56  # of a name, and of all names below a chart


@dataclass(frozen=True)
class Axis:
    """An axis; an end that is not given leaves room around the marks.

    Named places replace its ticks; of those below a chart as many are named as there is room for.
    """

    label: str
    low: float = math.nan
    high: float = math.nan
    places: Sequence[tuple[float, str]] = ()
    log: bool = False

    def around(self, *values: ArrayLike) -> "Axis":
        """The axis with both ends, of which these values decide those that were not given."""
        given = np.concatenate([np.zeros(0), *(np.ravel(np.asarray(each, np.float64)) for each in values)])
        drawn = given[can_be_drawn(given)]
        low, high = (float(drawn.min()), float(drawn.max())) if len(drawn) else (0.0, 1.0)
        margin = _ROOM * (high - low) if differ(low, high) else max(0.5, 0.01 * abs(low))
        return replace(
            self,
            low=low - margin if math.isnan(self.low) else self.low,
            high=high + margin if math.isnan(self.high) else self.high,
        )


@dataclass(frozen=True, eq=False)
class Mark:
    """What is drawn at (x, y) and stands for `role`.

    Points that cannot be drawn are left out; other places that are infinite lie at the edge of the chart. Error bars
    are along x in charts of rows; where an error is unknown there is none.
    """

    kind: Kind
    x: ArrayLike
    y: ArrayLike
    role: Role
    label: str = ""
    stderr: ArrayLike = 0.0

    @cached_property
    def places(self) -> tuple[Floats, Floats, Floats]:
        """x, y and the lengths of the error bars."""
        x, y, errors = np.broadcast_arrays(
            *(np.asarray(v, np.float64) for v in (self.x, self.y, self.stderr))
        )
        known = can_be_drawn(x) & can_be_drawn(y) if self.kind == "points" else ~(np.isnan(x) | np.isnan(y))
        rows = np.flatnonzero(known)
        if self.kind == "points" and len(rows) > _MOST_POINTS:
            rows = rows[np.linspace(0, len(rows) - 1, _MOST_POINTS).round().astype(np.int64)]
        return x[rows], y[rows], SIGMAS * np.where(can_be_drawn(errors), errors, 0.0)[rows]


@dataclass(frozen=True, eq=False)
class Chart:
    """Marks between two axes, empty without any. `description` puts it into words, `caption` says how to read it."""

    name: str
    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark]
    description: str
    caption: str = ""

    def __post_init__(self) -> None:
        for k, name in enumerate("xy"):
            axis, values = getattr(self, name), []
            for mark in self.marks:
                at, error = mark.places[k], mark.places[2] * ((name == "x") == self.in_rows)
                values += [at - error, at + error]
            places = [(at, shortened(text, _LONGEST_NAME)) for at, text in axis.places]
            letters = len(places) * max((len(text) for _, text in places), default=0)
            every = max(1, -(-letters // _LETTERS)) if name == "x" else 1
            object.__setattr__(self, name, replace(axis.around(*values), places=places[::every]))

    def __bool__(self) -> bool:
        return bool(self.marks)

    @property
    def in_rows(self) -> bool:
        """Whether marks lie in rows that have names."""
        return bool(self.y.places)

    @property
    def height(self) -> int:
        return _ROWS_MARGIN + _ROW_HEIGHT * len(self.y.places) if self.in_rows else _HEIGHT

    def places(self, mark: Mark) -> tuple[Floats, Floats, Floats]:
        """x and y of a mark, those that lie outside at the edge, and the lengths of its error bars."""
        x, y, errors = mark.places
        return np.clip(x, self.x.low, self.x.high), np.clip(y, self.y.low, self.y.high), errors


def can_be_drawn(values: ArrayLike) -> np.ndarray:
    """Which values can be drawn: finite ones that are not so large that nothing else would be seen."""
    return np.abs(np.asarray(values, np.float64)) < _LARGEST  # NaN is not


def differ(low: float, high: float) -> bool:
    """Whether two ends are farther apart than rounding."""
    return high - low > _ROUNDING * max(1.0, abs(low), abs(high))


def across(y: float, label: str = "") -> Mark:
    """A dashed line across the chart, to compare with."""
    return Mark("dashed", [-math.inf, math.inf], [y, y], "exact", label)


def upright(x: float, label: str = "") -> Mark:
    """A dashed line from the bottom to the top."""
    return Mark("dashed", [x, x], [-math.inf, math.inf], "exact", label)


def band(x: ArrayLike, ends: ArrayLike, role: Role, label: str) -> Mark:
    """The area between two ends (place, 2) along x (place,)."""
    x, (low, high) = np.asarray(x, np.float64), np.asarray(ends, np.float64).T
    return Mark("area", np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]]), role, label)


def bars(edges: Floats, heights: Floats, role: Role, label: str = "") -> Mark:
    """Bars from zero to their heights, between edges."""
    return Mark(
        "area", np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(heights, 2), [0.0]]), role, label
    )


def joined(x: ArrayLike, y: ArrayLike, role: Role, label: str, stderr: ArrayLike = 0.0) -> list[Mark]:
    """Points with a line through them, which is dashed for one of the roles: legible in grey."""
    line = Mark("dashed" if role == "optimistic" else "solid", x, y, role)
    return [line, Mark("points", x, y, role, label, stderr)]


def curve(values: Floats, end: float, role: Role, label: str) -> Mark:
    """Values at equal distances from 0 to `end`, of which a few hundred are drawn."""
    keep = np.unique(np.linspace(0, len(values) - 1, _CURVE).astype(int))
    return Mark("solid", end * keep / keep[-1], values[keep], role, label)


def steps_axis(steps: Sequence[int]) -> Axis:
    """A logarithmic axis of numbers of steps."""
    shown = sorted(set(steps))
    places = [(float(k), f"{k:,}") for k in shown]
    return Axis("annealing steps", shown[0] / 1.5, shown[-1] * 1.5, places, log=True)


@dataclass(frozen=True)
class Row:
    """A row of a chart: estimates by role, before intervals by the kind of their line."""

    name: str
    estimates: Mapping[Role, Estimate] = field(default_factory=dict)
    intervals: Mapping[Kind, tuple[float, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        values = [number(each.value) for each in self.estimates.values()]
        return f"{self.name} {', '.join([*values, *map(interval, self.intervals.values())])}"


def rows_chart(
    name: str,
    title: str,
    x: str,
    rows: Sequence[Row],
    caption: str,
    legend: Mapping[str, str] | None = None,
    zero: bool = False,
) -> Chart:
    """Estimates and intervals in rows below each other, and a line at zero to compare with.

    `legend` says what a role or a kind of line stands for; of each the first mark has the label.
    """
    labels = dict(legend or {})
    marks: list[Mark] = [upright(0.0)] if zero else []
    for k, row in enumerate(rows):
        for kind, ends in row.intervals.items():
            if ends != (-math.inf, math.inf):
                marks.append(Mark(kind, ends, [-k, -k], "exact", labels.pop(kind, "")))
        for role, each in row.estimates.items():
            marks.append(Mark("points", [each.value], [-k], role, labels.pop(role, ""), each.stderr))
    y = Axis("", 0.5 - len(rows), 0.5, [(float(-k), row.name) for k, row in enumerate(rows)])
    return Chart(name, title, Axis(x), y, marks, "; ".join(map(str, rows)), caption)


def sides_chart(
    title: str,
    x: Axis,
    label: str,
    numbers: Sequence[float],
    sides: Iterable[tuple[str, Role, Sequence[float], Sequence[float]]],
    exact: float | None = None,
    between: tuple[float, float] | None = None,
    caption: str = "",
) -> Chart:
    """Two sides (label, role, values, standard errors) closing in along x, with the exact value and an interval."""
    sides = list(sides)
    marks: list[Mark] = []
    if between is not None and can_be_drawn(between).all():
        marks.append(band([x.low, x.high], [between, between], "exact", "interval"))
    if exact is not None:
        marks.append(across(exact, f"exact, {exact:.2f}".replace("-", "\N{MINUS SIGN}")))
    for name, role, values, stderrs in sides:
        marks += joined(numbers, values, role, name, stderrs)
    described = [
        f"{number:,.0f}: " + ", ".join(f"{name} {values[k]:.2f}" for name, _, values, _ in sides)
        for k, number in enumerate(numbers)
    ]
    return Chart("sides", title, x, Axis(label), marks, "; ".join(described), caption)


def spread_chart(
    name: str, title: str, label: str, spreads: Iterable[tuple[str, Role, Floats]], caption: str
) -> Chart:
    """Histograms on common bins, of those (label, role, values) that have a spread; without marks if none has."""
    shown: list[tuple[str, Role, Floats]] = [
        (each, role, values)
        for each, role, values in spreads
        if len(values) > 1 and can_be_drawn(values).all() and differ(float(values.min()), float(values.max()))
    ]
    together = np.concatenate([np.zeros(0), *(values for *_, values in shown)])
    edges = np.histogram_bin_edges(together, bins=_BINS)
    marks = [
        bars(edges, np.histogram(values, edges, density=True)[0], role, each) for each, role, values in shown
    ]
    text = "; ".join(f"{each}: standard deviation {values.std():.2f}" for each, _, values in shown)
    return Chart(
        name, title, Axis(label), Axis("density", 0.0), marks, text or "none: all weights are equal", caption
    )


def histogram(values: Floats) -> Mark | None:
    """How many of the values lie between edges; None where they are too few or all the same."""
    found = values[can_be_drawn(values)]
    if len(found) < 3 or not differ(float(found.min()), float(found.max())):
        return None
    counts, edges = np.histogram(found, bins=min(_MOST_BINS, max(5, math.isqrt(len(found)) * 2)))
    return bars(edges, counts.astype(np.float64), "conservative")
