"""A stage computed: its tasks are given out, and their results kept as they come in."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.anneal import compile_kernels
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.ais import LogZ
from meltpoint.estimators.reverse import LogProb
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.compute import Result, Workshop
from meltpoint.evaluation.crew import Crew, threads_here, workers_of
from meltpoint.evaluation.parcel import stage_to_arrays
from meltpoint.evaluation.plan import Stage, Task, cut, work_of
from meltpoint.evaluation.weights import Weights
from meltpoint.runs.fingerprint import fingerprint
from meltpoint.runs.store import NullStore, Store

_PATIENCE = 0.1  # seconds between looks at the progress


@dataclass(frozen=True)
class Work:
    """How a stage is computed: nothing here changes a number.

    By `threads` threads of this process, or by the workers of `executor`. `store` keeps what is finished.
    """

    threads: int
    progress: Progress | None = None
    executor: Executor | None = None
    store: Store = field(default_factory=NullStore)


@dataclass(frozen=True)
class Found:
    """What a stage has found: AIS from its finished chains, RAISE for its finished examples, None without any.

    `finished` (example,) are the positions, among the stage's examples, that `prob` is for. A stage is complete
    unless it was interrupted. `seconds` are those of AIS and of RAISE, and the core seconds of earlier calls.
    """

    log_z: LogZ | None
    prob: LogProb | None
    finished: NDArray[np.integer]
    complete: bool
    seconds: dict[str, float]


def run_stage(stage: Stage, work: Work) -> Found:
    """Run AIS and RAISE, but for what is in the store. Ctrl-C ends it, and gives what is finished by then."""
    _keep_stage(stage, work.store)
    weights = Weights(len(stage.examples), stage.chains, stage.ais_chains)
    tasks = cut(len(stage.examples), stage.chains, stage.ais_chains)
    missing = [task for task in tasks if not weights.recall(work.store, stage.folder, task)]
    earlier = weights.seconds
    clock = Clock()
    interrupted = False
    try:
        with _crew(stage, work, len(missing)) as crew:
            for task, result in _completed(crew, missing, _look(stage, tasks, missing, crew, work)):
                weights.put(task, result)
                arrays = {"log_weights": result.log_weights, "seconds": np.array(result.seconds)}
                work.store.write(f"{stage.folder}/{task.name}", arrays)
                if weights.ais_complete and "AIS" not in clock.laps():
                    clock.lap("AIS")
    except KeyboardInterrupt:
        interrupted = True
    clock.lap("RAISE" if weights.ais_complete else "AIS")
    if earlier > 0:
        clock.add({"earlier calls": earlier})
    complete = weights.complete and not interrupted
    return Found(weights.log_z(), weights.log_prob(), weights.examples, complete, clock.laps())


def _keep_stage(stage: Stage, store: Store) -> None:
    """Store what the weights depend on, or make sure that it is what is stored."""
    name, arrays = f"{stage.folder}/stage", stage_to_arrays(stage)
    kept = store.read(name)
    if kept is None:
        store.write(name, arrays)
    elif fingerprint(kept) != fingerprint(arrays):
        raise InputError(
            found=f"another schedule, base or other chains in {stage.folder} of the run",
            expected="the stage that was begun",
            remedy="choose another folder",
        )


@contextmanager
def _crew(stage: Stage, work: Work, n_tasks: int) -> Iterator[Crew]:
    if work.executor is not None:
        with workers_of(work.executor, stage) as workers:
            yield workers
        return
    shop = Workshop(stage)
    if n_tasks:
        compile_kernels(shop.walk, work.progress)
    with threads_here(shop, n_tasks, work.threads) as threads:
        yield threads


def _completed(
    crew: Crew, tasks: Sequence[Task], look: Callable[[set[Task]], None]
) -> Iterator[tuple[Task, Result]]:
    """Tasks and their results in the order of their completion; `look` is told several times a second what is left."""
    futures: dict[Future[Result], Task] = {}
    pending: set[Future[Result]] = set()
    try:
        for task in tasks:
            futures[crew.submit(task)] = task
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=_PATIENCE, return_when=FIRST_COMPLETED)
            for future in sorted(finished, key=_failed):  # what is good is kept before an error ends it all
                yield futures[future], future.result()
            look({futures[future] for future in pending})
    except (BrokenExecutor, CancelledError) as problem:
        raise InputError(
            found=f"workers that ended before their work was done ({str(problem) or type(problem).__name__})",
            expected="workers that live on",
            remedy="was one killed, or the memory full? Start fewer, and call again; a run with a folder "
            "(run=, --run) continues where it was",
        ) from problem
    finally:
        for future in futures:
            future.cancel()


def _failed(future: "Future[Result]") -> bool:
    return future.cancelled() or future.exception() is not None


def _look(
    stage: Stage, tasks: Sequence[Task], missing: Sequence[Task], crew: Crew, work: Work
) -> Callable[[set[Task]], None]:
    """Tells the progress of AIS and RAISE as one task, in chain-steps: the remaining time is that of both."""
    amounts = {task: work_of(stage, task) for task in tasks}
    total = sum(amounts.values())

    def look(pending: set[Task]) -> None:
        if work.progress:
            left = sum(amounts[task] for task in pending) - crew.under_way(pending)
            work.progress("AIS and RAISE", total - left, total)

    look(set(missing))
    return look
