"""Rows of figures, what is asked of each, and how they look in a terminal."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

_WIDTHS = (40, 16, 10, 14, 6)
WIDTH = sum(_WIDTHS)


@dataclass(frozen=True)
class Row:
    """One line of the table; `passed` is None where nothing is asked, `details` go to the JSON file only."""

    name: str
    figure: str = ""
    ratio: float | None = None
    asked: str = ""
    passed: bool | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """Rows under one heading; `figure` and `ratio` head the two columns of figures."""

    title: str
    figure: str
    ratio: str
    rows: tuple[Row, ...]
    note: str = ""

    def __str__(self) -> str:
        lines = ["", _line(self.title, self.figure, self.ratio, "asked", ""), "-" * WIDTH]
        for row in self.rows:
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
            mark = {None: "", True: "pass", False: "FAIL"}[row.passed]
            lines.append(_line(row.name, row.figure, ratio, row.asked, mark))
        return "\n".join([*lines, self.note] if self.note else lines)

    def unjudged(self) -> "Section":
        """The same figures without a verdict, for runs too short to have one."""
        return replace(self, rows=tuple(replace(row, passed=None) for row in self.rows))

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return asdict(self)


def compared(
    name: str, rates: Sequence[float], ratios: Sequence[float], asked: float | None = None, **details: Any
) -> Row:
    """A row of rates and ratios, one of each per round; it shows the medians, and asks for a least ratio."""
    ratio = statistics.median(ratios)
    return Row(
        name,
        f"{statistics.median(rates):,.0f}",
        ratio,
        "" if asked is None else f">= {asked:g}",
        None if asked is None else ratio >= asked,
        {"rates": list(rates), "ratios": list(ratios), **details},
    )


def quotients(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Ratios round by round."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def _line(name: str, figure: str, ratio: str, asked: str, mark: str) -> str:
    first, *others = _WIDTHS
    cells = zip((figure, ratio, asked, mark), others, strict=True)
    return f"{name:<{first}}" + "".join(f"{cell:>{width}}" for cell, width in cells)
