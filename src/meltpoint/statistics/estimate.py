"""A number with its standard error, its direction, and what the error covers."""

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from meltpoint.records import NOT_WRITTEN, Record
from meltpoint.statistics.special import stdtrit

Direction: TypeAlias = Literal[
    "optimistic", "conservative", "lower bound", "upper bound", "exact", "difference"
]

_LARGE = 1e7  # larger numbers are printed with five digits, without decimals


@dataclass(frozen=True)
class Estimate(Record):
    """An estimate in nats, with its standard error and the degrees of freedom that this was estimated with.

    >>> print(Estimate(-86.351, 0.0123, "optimistic", "the noise of the AIS chains"))
    -86.35 ± 0.01
    """

    value: float
    stderr: float
    direction: Direction
    covers: str
    df: float = field(default=math.inf, kw_only=True, metadata={"unknown": math.inf, **NOT_WRITTEN})

    def __str__(self) -> str:
        return f"{self.value_text(self.digits)} {self.error_text(self.digits)}"

    @property
    def digits(self) -> int:
        """Decimals worth printing: two, or as many as the error's first digit needs (at most four); four if exact."""
        if self.direction == "exact" and self.stderr == 0:
            return 4
        if not math.isfinite(self.stderr) or self.stderr <= 0:
            return 2
        return min(4, max(2, -math.floor(math.log10(self.stderr))))

    def value_text(self, digits: int) -> str:
        """The value with that many decimals: never `-0.00`."""
        return decimals(round(self.value, digits) + 0.0, digits)

    def error_text(self, digits: int) -> str:
        """The error in words: never `± 0`."""
        if not math.isfinite(self.stderr):
            return "(error unknown)"
        if self.stderr <= 0:
            return "(exact)" if self.direction == "exact" else "(error below rounding)"
        shown = round(self.stderr, digits)
        return f"± {decimals(shown, digits)}" if shown > 0 else f"± <{10**-digits:g}"

    def margin(self, alpha: float) -> float:
        """What noise exceeds, on one side, with probability alpha (Student's t); infinite if the error is unknown.

        An effective sample of less than two has one degree of freedom: quantiles of fewer say nothing, and do not end.

        >>> round(Estimate(0.0, 1.0, "exact", "").margin(0.025), 2)
        1.96
        """
        if not math.isfinite(self.stderr) or not self.df > 0:
            return math.inf
        quantile = float(-stdtrit(min(max(self.df, 1.0), 1e9), alpha))
        return quantile * self.stderr if math.isfinite(quantile) else math.inf


def combined_error(*parts: tuple[float, float]) -> tuple[float, float]:
    """Standard error of a sum of independent parts (error, degrees of freedom), and its own degrees of freedom.

    Welch and Satterthwaite: (sum of v)^2 / sum of v^2 / df, for variances v. A part without an error counts for
    nothing; one whose error is not known makes the sum's unknown.

    >>> combined_error((3.0, 10.0), (4.0, math.inf))[0]
    5.0
    """
    variances = [error**2 for error, _ in parts]
    total = sum(variances)
    if not total > 0 or not math.isfinite(total):
        return math.sqrt(total) if total == 0 else math.nan, math.inf
    spent = sum(
        (v / total) ** 2 / df if df > 0 else math.inf
        for v, (_, df) in zip(variances, parts, strict=True)
        if v > 0
    )
    return math.sqrt(total), 1 / spent if spent > 0 else math.inf


def decimals(value: float, digits: int) -> str:
    """A number with that many decimals, or five digits in all where it is large."""
    return f"{value:.{digits}f}" if abs(value) < _LARGE else f"{value:.5g}"
