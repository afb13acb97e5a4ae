"""Batches: numbered items, such as chains or examples, and a pure function of what they share and of their numbers.

A batch is cut into *chunks* of successive items. A chunk is what a thread or a worker computes, what a run folder
keeps, and what is lost when a process is killed. The cut depends on the number of items alone, and no result on it.
"""

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import Progress

Record = TypeVar("Record", covariant=True)
Items = NDArray[np.integer]

CHUNK_SIZE = 64
"""Chains of a chunk: more make the kernels no faster, half as many make them slower (docs/decisions/runs.md)."""


class Work(Protocol[Record]):
    """What the items of a batch share, as a frozen dataclass (`records` says of what), and how some are computed."""

    def prepare(self, progress: Progress | None) -> None:
        """Do once, before any item is computed, what all items need, such as loading kernels."""
        ...

    def compute(self, items: Items, progress: Progress) -> Record:
        """A record of arrays whose first axis is that of the items (item,); `progress` may raise to end it."""
        ...


@dataclass(frozen=True, eq=False)
class Batch(Generic[Record]):
    """Items to compute, numbered from 0 on; progress counts `steps` for each.

    The name tells it apart from other batches in its run. Chunks have at most `chunk_size` items. A `short` batch is
    computed sooner than it is sent or written.
    """

    name: str
    work: Work[Record]
    items: int
    steps: float = 1.0
    chunk_size: int = CHUNK_SIZE
    short: bool = False

    @property
    def result(self) -> Any:  # noqa: ANN401
        """The type of the results."""
        return get_type_hints(type(self.work).compute, include_extras=True)["return"]

    @property
    def chunks(self) -> "list[Chunk]":
        return [Chunk(self, low, high) for low, high in ranges(self.items, self.chunk_size)]


@dataclass(frozen=True)
class Chunk:
    """The items of a batch from number `first` to before `end`."""

    batch: Batch[Any]
    first: int
    end: int

    @property
    def name(self) -> str:
        """Its name in a run folder."""
        return f"{self.batch.name}-{self.first:07d}"

    @property
    def count(self) -> int:
        return self.end - self.first

    @property
    def steps(self) -> float:
        return self.count * self.batch.steps

    def cut(self, parts: int) -> "list[Chunk]":
        """The same items in as many chunks as parts, or as there are items."""
        edges = np.linspace(self.first, self.end, min(parts, self.count) + 1).astype(int).tolist()
        return [Chunk(self.batch, low, high) for low, high in pairwise(edges)]


@dataclass(frozen=True, eq=False)
class Computed:
    """The results of a chunk, and the seconds that they took."""

    record: Any
    seconds: float


def compute_items(work: Work[Any], first: int, end: int, progress: Progress) -> Computed:
    """The results of the items from number `first` to before `end`."""
    begun = time.perf_counter()
    record = work.compute(np.arange(first, end), progress)
    return Computed(record, time.perf_counter() - begun)


def ranges(n: int, largest: int) -> list[tuple[int, int]]:
    """Cut n items into an even number of ranges of almost the same size: two cores end together.

    >>> ranges(100, 64), ranges(1, 64)
    ([(0, 50), (50, 100)], [(0, 1)])
    """
    count = min(n, 2 * -(-n // (2 * largest)))
    return list(pairwise(np.linspace(0, n, count + 1).astype(int).tolist())) if count else []
