"""A number with its standard error, its direction, and what the error covers."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Direction: TypeAlias = Literal["optimistic", "conservative", "lower bound", "exact", "difference"]


@dataclass(frozen=True)
class Estimate:
    """An estimate in nats.

    >>> print(Estimate(-86.351, 0.0123, "optimistic", "the noise of the AIS chains"))
    -86.35 ± 0.01
    """

    value: float
    stderr: float
    direction: Direction
    covers: str

    def __str__(self) -> str:
        return f"{self.value_text(self.digits)} {self.error_text(self.digits)}"

    @property
    def digits(self) -> int:
        """Decimals worth printing: two, or as many as the error's first digit needs (at most four)."""
        if not math.isfinite(self.stderr) or self.stderr <= 0:
            return 2
        return min(4, max(2, -math.floor(math.log10(self.stderr))))

    def value_text(self, digits: int) -> str:
        """The value with that many decimals: never `-0.00`."""
        return f"{round(self.value, digits) + 0.0:.{digits}f}"

    def error_text(self, digits: int) -> str:
        """The error in words: never `± 0`."""
        if not math.isfinite(self.stderr):
            return "(error unknown)"
        if self.stderr <= 0:
            return "(exact)" if self.direction == "exact" else "(error below rounding)"
        shown = round(self.stderr, digits)
        return f"± {shown:.{digits}f}" if shown > 0 else f"± <{10**-digits:g}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers and strings; an unknown error is None."""
        return {
            "value": self.value,
            "stderr": self.stderr if math.isfinite(self.stderr) else None,
            "direction": self.direction,
            "covers": self.covers,
        }
