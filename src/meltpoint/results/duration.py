"""Durations: measured, and as text."""

import time


def duration(seconds: float) -> str:
    """Seconds in the two largest units that matter.

    >>> duration(3.14), duration(75), duration(200), duration(7500)
    ('3.1 s', '75 s', '3 min 20 s', '2 h 5 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


class Clock:
    """Seconds of each part of an evaluation, and in all."""

    def __init__(self) -> None:
        self._begun = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since it was started."""
        return time.perf_counter() - self._begun

    @property
    def since_lap(self) -> float:
        """Seconds since the last lap."""
        return time.perf_counter() - self._last

    def lap(self, name: str) -> None:
        """Count the time since the last lap for `name`."""
        self.add({name: self.since_lap})

    def add(self, laps: dict[str, float]) -> None:
        """Count laps that were timed elsewhere; the next one begins now."""
        for name, seconds in laps.items():
            self._laps[name] = self._laps.get(name, 0.0) + seconds
        self._last = time.perf_counter()

    def seconds(self) -> dict[str, float]:
        """Seconds by name, and the total so far."""
        return {**self._laps, "total": self.elapsed}
