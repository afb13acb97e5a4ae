"""The scheduler: gives chunks to threads of this process or to the workers of an executor, and takes what they return.

It runs in the caller's own thread, which is where progress is reported and where Ctrl-C arrives. A chunk runs on one
thread. Where there are fewer chunks than threads each is cut further, and its parts are joined again.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from threading import Event
from typing import Any

from meltpoint.errors import Progress
from meltpoint.kernels.compiling import PREPARING
from meltpoint.runs.batch import Batch, Chunk, Computed, compute_items
from meltpoint.runs.executor import explain_dead_workers
from meltpoint.runs.records import join_records
from meltpoint.runs.sending import Sender

_LOOK_SECONDS = 0.1  # between looks at the progress


Submit = Callable[[Chunk], "Future[Computed]"]


def compute_chunks(
    chunks: Sequence[Chunk],
    keep: Callable[[Chunk, Computed], None],
    *,
    threads: int,
    sender: Sender | None = None,
    progress: Progress | None = None,
    report: Callable[[float], None] = lambda _done: None,
) -> None:
    """Compute chunks, and give each result to `keep` as soon as it is finished.

    `report` is called several times a second with the steps that are done. Ctrl-C, or a KeyboardInterrupt that is
    raised by `report`, stops what is under way, keeps what is finished, and is passed on.
    """
    if not chunks:
        return
    workers = _on_threads(chunks, threads, progress) if sender is None else _on_workers(chunks, sender)
    with workers as (parts, submit, under_way):
        unfinished = {chunk: len(cut) for chunk, cut in parts.items()}
        found: dict[Chunk, Computed] = {}
        owner = {part: chunk for chunk, cut in parts.items() for part in cut}

        def finish(part: Chunk, result: Computed) -> None:
            chunk = owner[part]
            found[part] = result
            unfinished[chunk] -= 1
            if not unfinished[chunk]:
                own = [found.pop(each) for each in parts[chunk]]
                joined = own[0].record if len(own) == 1 else join_records([each.record for each in own])
                keep(chunk, Computed(joined, sum(each.seconds for each in own)))

        total = sum(part.steps for part in owner)
        _drain(
            submit,
            list(owner),
            finish,
            lambda left: report(total - sum(p.steps for p in left) + under_way(left)),
        )


def _drain(
    submit: Submit,
    parts: Sequence[Chunk],
    finish: Callable[[Chunk, Computed], None],
    look: Callable[[list[Chunk]], None],
) -> None:
    """Submit all parts, and finish each as it is completed; `look` gets those that are left."""
    futures: dict[Future[Computed], Chunk] = {}
    taken: set[Future[Computed]] = set()
    try:
        look(list(parts))
        for part in parts:
            futures[submit(part)] = part
        pending = set(futures)
        while pending:
            ended, pending = wait(pending, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in sorted(ended, key=_failed):  # what is good is kept before an error ends it all
                finish(futures[future], future.result())
                taken.add(future)
            look([futures[future] for future in pending])
    except KeyboardInterrupt:
        # On a busy machine much may have been finished since the last look.
        for future in futures:
            if future not in taken and future.done() and not _failed(future):
                finish(futures[future], future.result())
        raise
    except (BrokenExecutor, CancelledError) as problem:
        raise explain_dead_workers(problem) from problem
    finally:
        for future in futures:
            future.cancel()


def _failed(future: "Future[Any]") -> bool:
    return future.cancelled() or future.exception() is not None


_Workers = tuple[dict[Chunk, list[Chunk]], Submit, Callable[[Sequence[Chunk]], float]]
"""The parts of each chunk, what begins one, and what gives the steps that are done of unfinished ones."""


@contextmanager
def _on_threads(chunks: Sequence[Chunk], threads: int, progress: Progress | None) -> Iterator[_Workers]:
    """Threads of this process; leaving this stops what they compute."""
    for batch in _batches(chunks):
        batch.work.prepare(progress)
    parts = {chunk: chunk.cut(-(-threads // len(chunks))) for chunk in chunks}
    stop = Event()
    done: dict[Chunk, float] = {}

    def compute(part: Chunk) -> Computed:
        def watch(task: str, amount: float, total: float) -> None:
            if stop.is_set():
                raise KeyboardInterrupt
            if task != PREPARING and total:
                done[part] = part.steps * amount / total

        return compute_items(part.batch.work, part.first, part.end, watch)

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield (
                parts,
                lambda part: pool.submit(compute, part),
                lambda left: sum(done.get(part, 0.0) for part in left),
            )
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _on_workers(chunks: Sequence[Chunk], sender: Sender) -> Iterator[_Workers]:
    """The workers of an executor, which do not tell how far they are with a chunk."""
    begin = {batch: sender.send(batch.work, "batch") for batch in _batches(chunks)}
    yield (
        {chunk: [chunk] for chunk in chunks},
        lambda chunk: begin[chunk.batch](chunk.first, chunk.end),
        lambda _left: 0.0,
    )


def _batches(chunks: Sequence[Chunk]) -> list[Batch[Any]]:
    return list(dict.fromkeys(chunk.batch for chunk in chunks))
