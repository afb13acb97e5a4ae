"""Where the pieces of a run are kept: nowhere, or in a run's folder."""

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from meltpoint.runs.fingerprint import Arrays


class Store(Protocol):
    """Keeps pieces, that is named arrays, by names such as "log_f" or "part-0/stage-0/ais-0000000"."""

    def read(self, name: str) -> dict[str, NDArray[Any]] | None:
        """The piece of this name, None if it has to be computed."""
        ...

    def write(self, name: str, arrays: Arrays) -> None:
        """Keep a piece."""
        ...


class Nowhere:
    """A store for those who want none."""

    def read(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Nothing was kept."""
        return None

    def write(self, name: str, arrays: Arrays) -> None:
        """Nothing is kept."""


def remember(store: Store, name: str, compute: Callable[[], Arrays]) -> Arrays:
    """The piece of this name, computed unless it is there.

    >>> int(remember(Nowhere(), "answer", lambda: {"value": __import__("numpy").array(42)})["value"])
    42
    """
    kept = store.read(name)
    if kept is not None:
        return kept
    arrays = compute()
    store.write(name, arrays)
    return arrays
