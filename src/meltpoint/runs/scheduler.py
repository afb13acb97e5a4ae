"""The scheduler: gives chunks to threads of this process or to workers, and takes what they return.

It runs in the caller's own thread, which is where progress is reported and where Ctrl-C arrives. A chunk runs on one
thread. Where there are fewer chunks than threads each is cut further, and its parts are joined again.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

from meltpoint.errors import Progress
from meltpoint.progress import COMPILING
from meltpoint.runs.batch import Chunk, Computed, compute_items
from meltpoint.runs.records import join_records
from meltpoint.runs.workers import Workers

_LOOK_SECONDS = 0.1  # between looks at the progress


def compute_chunks(
    chunks: Sequence[Chunk],
    keep: Callable[[Chunk, Computed], None],
    *,
    threads: int,
    workers: Workers | None = None,
    progress: Progress | None = None,
    report: Callable[[float], None] = lambda _done: None,
) -> None:
    """Compute chunks, and give each result to `keep` as soon as it is finished.

    `report` is called several times a second with the steps that are done. Ctrl-C, or a KeyboardInterrupt that is
    raised by `report`, stops what is under way, keeps what is finished, and is passed on.
    """
    if not chunks:
        return
    # Workers do not tell how far they are with a chunk, so that nothing is gained by cutting it.
    parts = {chunk: chunk.cut(1 if workers else -(-threads // len(chunks))) for chunk in chunks}
    owner = {part: chunk for chunk, cut in parts.items() for part in cut}
    found: dict[Chunk, Computed] = {}

    def finish(part: Chunk, result: Computed) -> None:
        found[part] = result
        chunk = owner[part]
        if all(each in found for each in parts[chunk]):
            own = [found.pop(each) for each in parts[chunk]]
            joined = own[0].record if len(own) == 1 else join_records([each.record for each in own])
            keep(chunk, Computed(joined, sum(each.seconds for each in own)))

    total = sum(part.steps for part in owner)
    with _on_workers(chunks, workers) if workers else _on_threads(chunks, threads, progress) as crew:

        def look(left: Sequence[Chunk]) -> None:
            report(total - sum(part.steps for part in left) + crew.under_way(left))

        _drain(crew, list(owner), finish, look)


@dataclass(frozen=True)
class _Crew:
    """Those who compute: what begins a chunk, the steps that are done of unfinished ones, and errors explained."""

    submit: Callable[[Chunk], "Future[Computed]"]
    under_way: Callable[[Sequence[Chunk]], float]
    explain: Callable[[BaseException], BaseException]


def _drain(
    crew: _Crew,
    parts: Sequence[Chunk],
    finish: Callable[[Chunk, Computed], None],
    look: Callable[[Sequence[Chunk]], None],
) -> None:
    """Submit all parts, and finish each as it is completed; `look` gets those that are left."""
    futures: dict[Future[Computed], Chunk] = {}
    pending: set[Future[Computed]] = set()
    try:
        look(parts)
        for part in parts:
            futures[future := crew.submit(part)] = part
            pending.add(future)
        while pending:
            ended, _ = wait(pending, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in sorted(ended, key=_failed):  # what is good is kept before an error ends it all
                finish(futures[future], future.result())
                pending.discard(future)
            look([futures[future] for future in pending])
    except KeyboardInterrupt:
        # On a busy machine much may have been finished since the last look.
        for future in pending:
            if future.done() and not _failed(future):
                finish(futures[future], future.result())
        raise
    except (Exception, CancelledError) as problem:
        explained = crew.explain(problem)
        if explained is problem:
            raise
        raise explained from problem
    finally:
        for future in futures:
            future.cancel()


def _failed(future: "Future[Any]") -> bool:
    return future.cancelled() or future.exception() is not None


@contextmanager
def _on_threads(chunks: Sequence[Chunk], threads: int, progress: Progress | None) -> Iterator[_Crew]:
    """Threads of this process; leaving this stops what they compute."""
    for batch in dict.fromkeys(chunk.batch for chunk in chunks):
        batch.work.prepare(progress)
    stop = Event()
    done: dict[Chunk, float] = {}

    def compute(part: Chunk) -> Computed:
        def watch(task: str, amount: float, total: float) -> None:
            if stop.is_set():
                raise KeyboardInterrupt
            if task != COMPILING and total:
                done[part] = part.steps * amount / total

        return compute_items(part.batch.work, part.first, part.end, watch)

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield _Crew(
                lambda part: pool.submit(compute, part),
                lambda left: sum(done.get(part, 0.0) for part in left),
                lambda problem: problem,
            )
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _on_workers(chunks: Sequence[Chunk], workers: Workers) -> Iterator[_Crew]:
    begin = {batch: workers.send(batch.work) for batch in dict.fromkeys(chunk.batch for chunk in chunks)}
    watch = workers.watch()

    def under_way(_left: Sequence[Chunk]) -> float:
        watch()
        return 0.0

    yield _Crew(lambda chunk: begin[chunk.batch](chunk.first, chunk.end), under_way, workers.explain)
