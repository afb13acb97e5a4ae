"""Budgets of time, as people write them."""

import math
import re

from meltpoint.errors import InputError

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_PATTERN = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def seconds_of(budget: str | float) -> float:
    """Seconds of "30m", "2h", "90s", "1h30m", or of a number of seconds.

    >>> seconds_of("1h30m"), seconds_of("90s"), seconds_of(45)
    (5400.0, 90.0, 45.0)
    """
    if isinstance(budget, str):
        match = _PATTERN.fullmatch(budget.strip().lower().replace(" ", ""))
        parts = match.groups() if match else ()
        seconds = sum(float(part) * unit for part, unit in zip(parts, _UNITS.values(), strict=False) if part)
    else:
        seconds = math.nan if isinstance(budget, bool) else float(budget)
    if not 0 < seconds < math.inf:
        raise InputError(
            found=f"budget={budget!r}",
            expected="a length of time such as '30m', '2h', '90s' or '1h30m', or a number of seconds",
            remedy="half an hour is usual",
        )
    return seconds
