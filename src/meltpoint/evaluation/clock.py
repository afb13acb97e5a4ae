"""How long each part of an evaluation took."""

import time
from collections.abc import Mapping


class Clock:
    """Seconds of each part, and in all."""

    def __init__(self) -> None:
        self.started = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Count the time since the last lap for `name`."""
        now = time.perf_counter()
        self.add({name: now - self._last})

    def add(self, laps: Mapping[str, float]) -> None:
        """Count laps that were timed elsewhere; the next one begins now."""
        for name, seconds in laps.items():
            self._laps[name] = self._laps.get(name, 0.0) + seconds
        self._last = time.perf_counter()

    def laps(self) -> dict[str, float]:
        """Seconds by name."""
        return dict(self._laps)

    def seconds(self) -> dict[str, float]:
        """Seconds by name, and the total so far."""
        return {**self._laps, "total": time.perf_counter() - self.started}
