"""Charts as specifications: axes, and the marks between them. `svg` draws them on pages, `figures` with Matplotlib."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.layers.unit import Floats
from meltpoint.results.words import interval, number

Role: TypeAlias = Literal["conservative", "optimistic", "exact"]
"""What a mark stands for: renderers give each a colour, a shape and a dash, so that colour never stands alone."""

Style: TypeAlias = Literal["dashed", "thin", "thick"]

SIGMAS = 2.0
"""Standard errors that error bars show."""

_LARGEST = 1e12
_ROUNDING = 1e-9
_BINS = 36
_MOST_BINS = 30
_MOST_POINTS = 600
_CURVE = 160  # points of a curve


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`. Named places replace its ticks; on `log` axes they are powers of ten."""

    label: str
    low: float
    high: float
    places: Sequence[tuple[float, str]] = ()
    log: bool = False


@dataclass(frozen=True, eq=False)
class Points:
    """Marks at (x, y), with errors along one axis or none; `joined` by a line, or a line alone if not `marked`."""

    x: ArrayLike
    y: ArrayLike
    role: Role
    label: str = ""
    error: ArrayLike | None = None
    along: Literal["x", "y"] = "y"
    joined: bool = False
    marked: bool = True
    small: bool = False


@dataclass(frozen=True)
class Line:
    """A straight line between two points, infinite ones at the edge; `caps` mark its finite ends."""

    start: tuple[float, float]
    end: tuple[float, float]
    role: Role = "exact"
    label: str = ""
    style: Style = "dashed"
    caps: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """A histogram: heights between edges."""

    edges: Floats
    heights: Floats
    role: Role
    label: str = ""


@dataclass(frozen=True, eq=False)
class Band:
    """The area between `low` and `high` along x."""

    x: Floats
    low: Floats
    high: Floats
    role: Role
    label: str = ""


Mark: TypeAlias = Points | Line | Bars | Band


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
    height: int = field(default=270, kw_only=True)

    def __bool__(self) -> bool:
        return bool(self.marks)


def can_be_drawn(values: ArrayLike) -> np.ndarray:
    """Which values can be drawn: finite ones that are not so large that nothing else would be seen."""
    return np.abs(np.asarray(values, np.float64)) < _LARGEST  # NaN is not


def differ(low: float, high: float) -> bool:
    """Whether two ends are farther apart than rounding."""
    return high - low > _ROUNDING * max(1.0, abs(low), abs(high))


def axis_around(label: str, *values: ArrayLike, room: float = 0.06) -> Axis:
    """An axis with room around those of the values that can be drawn."""
    given = np.concatenate([np.zeros(0), *(np.ravel(np.asarray(each, np.float64)) for each in values)])
    drawn = given[can_be_drawn(given)]
    low, high = (float(drawn.min()), float(drawn.max())) if len(drawn) else (0.0, 1.0)
    margin = room * (high - low) if differ(low, high) else max(0.5, 0.01 * abs(low))
    return Axis(label, low - margin, high + margin)


def steps_axis(steps: Sequence[int]) -> Axis:
    """A logarithmic axis of numbers of steps, each of them a named place as far as there is room."""
    shown = sorted(set(steps))
    every = -(-len(shown) // 7)
    places = tuple((float(k), f"{k:,}") for k in shown[:: every or 1])
    return Axis("annealing steps", shown[0] / 1.5, shown[-1] * 1.5, places, log=True)


def errors_of(errors: ArrayLike) -> Floats:
    """Lengths of error bars; none where an error is unknown."""
    found = np.asarray(errors, np.float64)
    return SIGMAS * np.where(can_be_drawn(found), found, 0.0)


@dataclass(frozen=True)
class Row:
    """A row of a chart: values (role, value, standard error) before intervals (style, ends)."""

    name: str
    values: Sequence[tuple[Role, float, float]] = ()
    intervals: Sequence[tuple[Style, tuple[float, float]]] = ()

    def __str__(self) -> str:
        parts = [
            *(number(value) for _, value, _ in self.values),
            *(interval(ends) for _, ends in self.intervals),
        ]
        return f"{self.name} {', '.join(parts)}"


def rows_chart(
    name: str,
    title: str,
    x: str,
    rows: Sequence[Row],
    caption: str,
    legend: Mapping[str, str] | None = None,
    zero: bool = False,
) -> Chart:
    """Values and intervals in rows below each other, and a line at `zero` to compare with.

    `legend` says what a role or a style stands for; of each the first mark has the label.
    """
    labels = dict(legend or {})
    marks: list[Mark] = [Line((0.0, -math.inf), (0.0, math.inf))] if zero else []
    drawn: list[ArrayLike] = [[0.0] * zero]
    for k, row in enumerate(rows):
        for style, (low, high) in row.intervals:
            drawn.append([low, high])
            if -math.inf < high and (low, high) != (-math.inf, math.inf):
                ends = (low, -k), (high, -k)
                marks.append(Line(*ends, "exact", labels.pop(style, ""), style, caps=True))
        for role, value, stderr in row.values:
            error = errors_of([stderr])
            drawn += [value - error, value + error]
            marks.append(Points([value], [-k], role, labels.pop(role, ""), error, along="x"))
    return Chart(
        name,
        title,
        axis_around(x, *drawn),
        Axis("", 0.5 - len(rows), 0.5, [(float(-k), row.name) for k, row in enumerate(rows)]),
        marks,
        "; ".join(map(str, rows)),
        caption,
        height=54 + 30 * len(rows),
    )


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
        low, high = between
        marks.append(Band(np.array([x.low, x.high]), np.full(2, low), np.full(2, high), "exact", "interval"))
    if exact is not None:
        shown = f"{exact:.2f}".replace("-", "\N{MINUS SIGN}")
        marks.append(Line((-math.inf, exact), (math.inf, exact), "exact", f"exact, {shown}"))
    ends = [np.array([] if exact is None else [exact]), np.array(between or [])]
    for name, role, values, stderrs in sides:
        errors = errors_of(stderrs)
        marks.append(Points(numbers, values, role, name, errors, joined=True))
        ends += [np.asarray(values) - errors, np.asarray(values) + errors]
    described = [
        f"{number:,.0f}: " + ", ".join(f"{name} {values[k]:.2f}" for name, _, values, _ in sides)
        for k, number in enumerate(numbers)
    ]
    y = axis_around(label, *ends)
    return Chart("sides", title, x, y, marks, "; ".join(described), caption)


def spread_chart(
    name: str, title: str, label: str, spreads: Iterable[tuple[str, Role, Floats]], caption: str
) -> Chart:
    """Histograms on common bins, of those (label, role, values) that have a spread; without marks if none has."""
    shown: list[tuple[str, Role, Floats]] = [
        (each, role, values)
        for each, role, values in spreads
        if len(values) > 1 and can_be_drawn(values).all() and differ(float(values.min()), float(values.max()))
    ]
    if not shown:
        empty = Axis(label, 0.0, 1.0), Axis("density", 0.0, 1.0)
        return Chart(name, title, *empty, [], "none: all weights are equal")
    edges = np.histogram_bin_edges(np.concatenate([values for *_, values in shown]), bins=_BINS)
    marks = [
        Bars(edges, np.histogram(values, edges, density=True)[0], role, each) for each, role, values in shown
    ]
    top = max(float(bars.heights.max()) for bars in marks)
    text = "; ".join(f"{each}: standard deviation {values.std():.2f}" for each, _, values in shown)
    x = Axis(label, float(edges[0]), float(edges[-1]))
    return Chart(name, title, x, Axis("density", 0.0, 1.08 * top), marks, text, caption)


def histogram(values: Floats) -> Bars | None:
    """How many of the values lie between edges; None where they are too few or all the same."""
    found = values[can_be_drawn(values)]
    if len(found) < 3 or not differ(float(found.min()), float(found.max())):
        return None
    counts, edges = np.histogram(found, bins=min(_MOST_BINS, max(5, math.isqrt(len(found)) * 2)))
    return Bars(edges, counts.astype(np.float64), "conservative")


def curve(values: Floats) -> tuple[Floats, Floats]:
    """Numbers and values of a few hundred places along values (place,)."""
    keep = np.unique(np.linspace(0, len(values) - 1, _CURVE).astype(int))
    return keep.astype(np.float64), values[keep]


def first_drawn(*columns: Floats) -> list[Floats]:
    """Of columns (example,), the first rows in which everything can be drawn."""
    rows = np.flatnonzero(np.logical_and.reduce([can_be_drawn(column) for column in columns]))[:_MOST_POINTS]
    return [column[rows] for column in columns]
