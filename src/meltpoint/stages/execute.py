"""Running a stage: its tasks go to threads, processes or a cluster, and each result is kept when it is there."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import Event, Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.loop import compile_kernels
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.registry import prepare_path
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.ais import run_ais
from meltpoint.estimators.raise_ import run_raise
from meltpoint.kernels.announcing import PREPARING
from meltpoint.runs.contents import growth_name, stage_name
from meltpoint.runs.executor import explain_dead_workers
from meltpoint.runs.fingerprint import Arrays, fingerprint
from meltpoint.runs.processes import stop_if_asked
from meltpoint.runs.run import Run
from meltpoint.runs.store import NullStore, Store
from meltpoint.stages.decisions import growth_to_arrays
from meltpoint.stages.old_sending import Payload, Sender, read_payload
from meltpoint.stages.stage import (
    Stage,
    StageWeights,
    Task,
    model_to_arrays,
    stage_from_arrays,
    stage_to_arrays,
    tasks_of,
)

ANNEALING = "AIS and RAISE"
"""The name of a stage in progress, by default."""

_LOOK_SECONDS = 0.1  # between looks at the progress


@dataclass(frozen=True)
class Execution:
    """How a stage is computed: nothing here changes a number.

    By `threads` threads of this process, or by the workers of `executor`, which get what all chains of a model share
    through `sender`. `store` keeps what is finished.
    """

    threads: int
    progress: Progress | None = None
    executor: Executor | None = None
    store: Store = field(default_factory=NullStore)
    task: str = ANNEALING
    sender: Sender | None = None
    run: Run = field(default_factory=Run)


@dataclass(frozen=True, eq=False)
class StageResult:
    """A stage's weights, as far as they are known; `complete` unless it was interrupted.

    `seconds` are those of AIS and of RAISE, and the core seconds of earlier calls.
    """

    weights: StageWeights
    complete: bool
    seconds: dict[str, float]


def run_stage(stage: Stage, execution: Execution, known: StageWeights | None = None) -> StageResult:
    """Run AIS and RAISE, but for what is in the store. Ctrl-C ends it, and gives what is finished by then.

    Of a stage that has grown `known` are the weights before.
    """
    _keep_stage(stage, execution.store)
    weights = recall_weights(stage, execution.store, known)
    tasks = tasks_of(stage.size, stage.earlier)
    missing = [task for task in tasks if not weights.knows(task)]
    earlier, begun = weights.seconds, time.perf_counter()
    seconds: dict[str, float] = {}
    interrupted = False
    try:
        with _workers(stage, execution, len(missing)) as workers:
            # One task for AIS and RAISE, in chain-steps: the remaining time is that of both.
            amounts = {task: task.work(stage) for task in tasks}
            look = progress_of(amounts, execution.progress, execution.task, workers.under_way)
            look(set(missing))
            for task, result in completed_tasks(workers.submit, missing, look):
                weights.put(task, result)
                execution.store.write(f"{stage.folder}/{task.name}", result)
                if weights.ais_complete and "AIS" not in seconds:
                    seconds["AIS"] = time.perf_counter() - begun
    except KeyboardInterrupt:
        interrupted = True
    last = "RAISE" if weights.ais_complete else "AIS"
    seconds[last] = time.perf_counter() - begun - sum(seconds.values())
    if earlier > 0:
        seconds["earlier calls"] = earlier
    return StageResult(weights, weights.complete and not interrupted, seconds)


def recall_weights(stage: Stage, store: Store, known: StageWeights | None = None) -> StageWeights:
    """What a store has of a stage's weights; of one that has grown, besides those that are `known`."""
    weights = known.grown(stage.size) if known else StageWeights(stage.size)
    for task in tasks_of(stage.size, stage.earlier):
        if not weights.knows(task):
            weights.recall(store, stage.folder, task)
    return weights


def _keep_stage(stage: Stage, store: Store) -> None:
    """Store what the weights depend on, or make sure that it is what is stored."""
    name, arrays = stage_name(stage.part, stage.index), stage_to_arrays(stage)
    if stage.grown_at is not None:
        name = growth_name(stage.part, stage.index, stage.look)
        arrays = growth_to_arrays(stage)
    kept = store.read(name)
    if kept is None:
        store.write(name, arrays)
    elif fingerprint(kept) != fingerprint(arrays):
        raise InputError(
            found=f"another schedule, base or other chains in {stage.folder} of the run",
            expected="the stage that was begun",
            remedy="choose another folder",
        )


@dataclass(frozen=True, eq=False)
class PreparedStage:
    """A stage with what all of its tasks need, made once."""

    stage: Stage

    @cached_property
    def path(self) -> PreparedPath:
        """The path from base to model, as a backend runs it."""
        return prepare_path(self.stage.model.path(self.stage.base), self.stage.precision)

    def compute(self, task: Task, progress: Progress | None = None) -> dict[str, NDArray[Any]]:
        """The arrays of a task, as `StageWeights` takes them; KeyboardInterrupt if its chains were stopped."""
        begun = time.perf_counter()
        stage, how = self.stage, {"progress": progress}
        if task.estimator == "ais":
            annealed = run_ais(self.path, stage.betas, task.ais_numbers(stage), stage.seed, **how)
            arrays = {"log_weights": annealed.log_weights}
        else:
            first = stage.part * stage.chains
            melted = run_raise(
                stage.model,
                self.path,
                stage.betas,
                stage.examples[task.part],
                np.arange(task.first, task.first + task.count),
                np.arange(first, first + stage.chains),
                stage.seed,
                **how,
            )
            arrays = {"log_weights": melted.log_weights, "log_reverse_weights": melted.log_reverse_weights}
        return {**arrays, "seconds": np.array(time.perf_counter() - begun)}


def _workers(stage: Stage, execution: Execution, n_tasks: int) -> "AbstractContextManager[Workers[Task]]":
    if execution.executor is not None:
        model = model_to_arrays(stage.model)
        own = {name: array for name, array in stage_to_arrays(stage).items() if name not in model}
        return remote_workers(execution, (model, own), "stage", _compute_in_worker)
    prepared = PreparedStage(stage)
    if n_tasks:
        compile_kernels(prepared.path, execution.progress)
    return thread_workers(prepared.compute, execution.threads)


def load_payload(*payloads: Payload) -> PreparedStage:
    """The stage of these payloads, ready for its tasks; kept for those to come, one for all threads of a worker."""
    with _loading:
        return _load(*payloads)


_loading = Lock()


@lru_cache(maxsize=2)
def _load(*payloads: Payload) -> PreparedStage:
    arrays = {name: array for payload in payloads for name, array in read_payload(payload).items()}
    prepared = PreparedStage(stage_from_arrays(arrays))
    compile_kernels(prepared.path)  # before two threads can begin to
    return prepared


def _compute_in_worker(model: Payload, stage: Payload, task: Task) -> Arrays:
    return load_payload(model, stage).compute(task, progress=stop_if_asked)


AnyTask = TypeVar("AnyTask", bound=Hashable)


@dataclass(frozen=True)
class Workers(Generic[AnyTask]):
    """What computes tasks: `submit` begins one, `under_way` gives how much of unfinished ones is done."""

    submit: Callable[[AnyTask], "Future[Arrays]"]
    under_way: Callable[[set[AnyTask]], float] = lambda _tasks: 0.0


@contextmanager
def thread_workers(
    compute: Callable[[AnyTask, Progress], Arrays], threads: int
) -> Iterator[Workers[AnyTask]]:
    """So many threads of this process; leaving this stops the tasks that are not finished."""
    stop = Event()
    done: dict[AnyTask, float] = {}

    def run(task: AnyTask) -> Arrays:
        def watch(name: str, amount: float, _total: float) -> None:
            if stop.is_set():
                raise KeyboardInterrupt
            if name != PREPARING:
                done[task] = amount

        return compute(task, watch)

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield Workers(
                lambda task: pool.submit(run, task), lambda tasks: sum(done.get(task, 0.0) for task in tasks)
            )
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def remote_workers(
    execution: Execution,
    arrays: tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]],
    name: str,
    compute: Callable[[Any, Any, AnyTask], Arrays],
) -> Iterator[Workers[AnyTask]]:
    """Workers that get the arrays of the model and of the tasks once; they do not report on unfinished tasks."""
    assert execution.executor is not None, "there are workers"
    given = execution.sender
    with Sender(execution.executor) if given is None else nullcontext(given) as sender:
        model, own = sender.send(arrays[0], "model"), sender.send(arrays[1], name)
        yield Workers(lambda task: sender.submit(compute, model, own, task))


def progress_of(
    amounts: Mapping[AnyTask, float],
    progress: Progress | None,
    name: str,
    under_way: Callable[[set[AnyTask]], float] = lambda _tasks: 0.0,
) -> Callable[[set[AnyTask]], None]:
    """A function that reports, from the tasks that are left, how much of the amounts of all tasks is done."""
    total = float(sum(amounts.values()))

    def look(pending: set[AnyTask]) -> None:
        if progress:
            left = sum(amounts[task] for task in pending) - under_way(pending)
            progress(name, total - left, total)

    return look


def completed_tasks(
    submit: "Callable[[AnyTask], Future[Arrays]]",
    tasks: Sequence[AnyTask],
    look: Callable[[set[AnyTask]], None],
) -> Iterator[tuple[AnyTask, Arrays]]:
    """Tasks and their results in the order of their completion; `look` gets what is left, several times a second."""
    futures: dict[Future[Arrays], AnyTask] = {}
    yielded: set[Future[Arrays]] = set()
    try:
        for task in tasks:
            futures[submit(task)] = task
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in sorted(finished, key=_failed):  # what is good is kept before an error ends it all
                yield futures[future], future.result()
                yielded.add(future)
            look({futures[future] for future in pending})
    except KeyboardInterrupt:
        # On a busy machine much may have been finished since the last look.
        for future in futures:
            if future not in yielded and future.done() and not _failed(future):
                yield futures[future], future.result()
        raise
    except (BrokenExecutor, CancelledError) as problem:
        raise explain_dead_workers(problem) from problem
    finally:
        for future in futures:
            future.cancel()


def _failed(future: "Future[Arrays]") -> bool:
    return future.cancelled() or future.exception() is not None
