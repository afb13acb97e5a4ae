"""A run: what computes batches and decisions, and keeps them if it has a folder.

Without a folder nothing is kept and nothing is turned into arrays. With one, a value or a chunk that is there is read,
checked and not computed again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, Progress
from meltpoint.fingerprint import fingerprint
from meltpoint.kernels.compiling import check_threads, seconds_compiling
from meltpoint.runs.batch import Batch, Chunk
from meltpoint.runs.records import from_arrays, join_records, to_arrays
from meltpoint.runs.scheduler import Computed, compute_chunks
from meltpoint.runs.store import RunFolder
from meltpoint.runs.workers import Workers

T = TypeVar("T")
Record = TypeVar("Record")


@dataclass(frozen=True, eq=False)
class Results(Generic[Record]):
    """Results of those items (item,) of a batch that are finished, None without any, and the seconds they took.

    `earlier` are the seconds of those that were kept before.
    """

    values: Record | None
    finished: NDArray[np.bool_]
    seconds: float = 0.0
    earlier: float = 0.0

    @property
    def complete(self) -> bool:
        return bool(self.finished.all())


@dataclass
class Spent:
    """Steps that this process has computed, or had computed by workers, and the seconds until they were there."""

    steps: float = 0.0
    seconds: float = 0.0


@dataclass(eq=False)
class Run:
    """Computes on `threads` threads of this process, or by workers; keeps results if it has a folder.

    Its names are below `prefix` there. A run with another folder or progress callback is made by `dataclasses.replace`.

    >>> Run().once("answer", int, lambda: 42)
    42
    """

    threads: int | None = None
    progress: Progress | None = None
    workers: Workers | None = None
    folder: RunFolder | None = None
    spent: Spent = field(default_factory=Spent)
    prefix: str = ""

    def __post_init__(self) -> None:
        self.n_threads = check_threads(self.threads)

    def inside(self, folder: str) -> "Run":
        """The same run with its names in a folder of the run's folder."""
        return replace(self, prefix=f"{self.prefix}{folder}/")

    def once(self, name: str, kind: type[T], compute: Callable[[], T], **lengths: int) -> T:
        """A decision or a number: computed unless the run has a value of this name and type.

        `lengths` are those of axes that the type names.
        """
        found = self._read(name, lambda arrays: [from_arrays(kind, arrays, lengths)])
        if found is not None:
            return found[0]
        value = compute()
        self.keep(name, value)
        return value

    def recall(self, name: str, kind: type[T], **lengths: int) -> T | None:
        """What the run has of this name, None if there is nothing."""
        return self._read(name, lambda arrays: from_arrays(kind, arrays, lengths))

    def keep(self, name: str, value: Any) -> None:  # noqa: ANN401
        """Keep a value in place of what was kept before."""
        if self.folder is not None:
            self.folder.write(f"{self.prefix}{name}", to_arrays(value))

    def results(self, batch: Batch[Record], task: str) -> Record:
        """Results of all items, in order. KeyboardInterrupt if Ctrl-C came before, with the finished chunks kept."""
        return self.together([batch], task)[0]

    def together(self, batches: Sequence[Batch[Record]], task: str, *, in_turn: bool = False) -> list[Record]:
        """The same of several batches that do not depend on each other.

        With `in_turn` this process begins a batch when the one before is finished: laid out all at once, the paths of
        many bases to a large model would not fit into memory.
        """
        found, interrupted = self.results_so_far(batches, task, in_turn=in_turn)
        if interrupted:
            raise KeyboardInterrupt
        return [cast("Record", each.values) for each in found]

    def results_so_far(
        self, batches: Sequence[Batch[Any]], task: str, *, in_turn: bool = False
    ) -> tuple[list[Results[Any]], bool]:
        """Results of each batch as far as they are finished, and whether Ctrl-C came before all were.

        Chunks are begun in the order of the batches. Progress counts the steps of all.
        """
        folder, workers = self.folder, self.workers
        if all(batch.short for batch in batches):
            folder = workers = None
        kept = {} if folder is None else self._kept(batches)
        found = dict(kept)
        of = {batch: _fingerprint(batch) for batch in batches if folder is not None}
        total = sum(batch.items * batch.steps for batch in batches)

        def keep(chunk: Chunk, result: Computed) -> None:
            found[chunk.name] = result
            if folder is not None:
                extra = {_OF: np.array(of[chunk.batch]), _SECONDS: np.array(result.seconds)}
                folder.write(f"{self.prefix}{chunk.name}", {**to_arrays(result.record), **extra})

        def report(done: float) -> None:
            if self.progress:
                self.progress(task, before + done, total)

        how = {"threads": self.n_threads, "workers": workers, "progress": self.progress, "report": report}
        begun, interrupted = time.perf_counter() - seconds_compiling(), False
        try:
            for group in [[batch] for batch in batches] if in_turn and workers is None else [batches]:
                chunks = [chunk for batch in group for chunk in batch.chunks]
                before = sum(
                    chunk.steps for batch in batches for chunk in batch.chunks if chunk.name in found
                )
                compute_chunks([chunk for chunk in chunks if chunk.name not in found], keep, **how)
        except KeyboardInterrupt:
            interrupted = True
        self.spent.seconds += time.perf_counter() - seconds_compiling() - begun
        new = found.keys() - kept.keys()
        self.spent.steps += sum(
            chunk.steps for batch in batches for chunk in batch.chunks if chunk.name in new
        )
        return [_results(batch, found, kept) for batch in batches], interrupted

    def kept_results(self, batches: Sequence[Batch[Any]]) -> list[Results[Any]]:
        """What the run has of each batch; nothing is computed."""
        kept = self._kept(batches)
        return [_results(batch, kept, kept) for batch in batches]

    def _kept(self, batches: Sequence[Batch[Any]]) -> dict[str, Computed]:
        """The chunks that are kept by name, without those of other work."""
        found: dict[str, Computed] = {}
        for batch in batches:
            of = _fingerprint(batch)
            for chunk in batch.chunks:
                kept = self._read(chunk.name, lambda arrays, c=chunk, of=of: _from_chunk(c, of, arrays))
                if kept:
                    found[chunk.name] = kept
        return found

    def _read(self, name: str, load: Callable[[dict[str, NDArray[Any]]], T]) -> T | None:
        return None if self.folder is None else self.folder.load(f"{self.prefix}{name}", load)


_OF, _SECONDS = "of", "seconds"
"""Names of the arrays that a chunk has besides its results: a fingerprint of the work they are of, and their time."""


def _fingerprint(batch: Batch[Any]) -> str:
    """What tells the work of a batch apart from other work of the run, whose model is the same."""
    return fingerprint(to_arrays(batch.work, skip_models=True))


def _from_chunk(chunk: Chunk, of: str, arrays: dict[str, NDArray[Any]]) -> Computed | None:
    """The results in a chunk; None if they are those of other work."""
    if str(arrays.pop(_OF)) != of:
        return None
    seconds = from_arrays(float, {"value": arrays.pop(_SECONDS)})
    record = from_arrays(chunk.batch.result, arrays)
    for each in fields(record):
        rows = len(getattr(record, each.name))
        if rows != chunk.count:
            raise InputError(
                found=f"{rows:,} rows of {each.name}",
                expected=f"{chunk.count:,}",
                remedy="remove the file, and it is computed again",
            )
    return Computed(record, seconds)


def _results(batch: Batch[Any], found: Mapping[str, Computed], kept: Mapping[str, Computed]) -> Results[Any]:
    own = [chunk for chunk in batch.chunks if chunk.name in found]
    finished = np.zeros(batch.items, np.bool_)
    for chunk in own:
        finished[chunk.first : chunk.end] = True
    records = [found[chunk.name].record for chunk in own]
    return Results(
        join_records(records) if records else None,
        finished,
        sum(found[chunk.name].seconds for chunk in own),
        sum(found[chunk.name].seconds for chunk in own if chunk.name in kept),
    )
