"""Times of the parts of an evaluation."""

import time


class Clock:
    """Seconds of each part of an evaluation, and in all."""

    def __init__(self) -> None:
        self._begun = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
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
