"""Who computes tasks: threads of this process, or an executor with workers of its own."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any, Protocol

from meltpoint.evaluation.compute import Result, Workshop, compute
from meltpoint.evaluation.parcel import Parcel, opened, parcel_of
from meltpoint.evaluation.plan import Stage, Task
from meltpoint.files.temporary import temporary_folder
from meltpoint.workers import dask
from meltpoint.workers.processes import stop_if_asked


class Crew(Protocol):
    """Takes tasks, and tells how much of the unfinished ones is done."""

    def submit(self, task: Task) -> "Future[Result]":
        """Begin a task as soon as there is somebody to do it."""
        ...

    def under_way(self, tasks: set[Task]) -> float:
        """Chain-steps done of these tasks, which are not finished, as far as it is known."""
        ...


@dataclass(frozen=True)
class Threads:
    """Threads of this process. They tell how far they are, and stop soon after they are asked to."""

    pool: ThreadPoolExecutor
    shop: Workshop
    each: int
    stop: Event
    done: dict[Task, float]

    def submit(self, task: Task) -> "Future[Result]":
        """Begin a task as soon as a thread is free."""
        return self.pool.submit(self._run, task)

    def under_way(self, tasks: set[Task]) -> float:
        """Chain-steps done of these tasks, which are not finished."""
        return sum(self.done.get(task, 0.0) for task in tasks)

    def _run(self, task: Task) -> Result:
        def watch(name: str, done: float, _total: float) -> None:
            if self.stop.is_set():
                raise KeyboardInterrupt
            if name in ("AIS", "RAISE"):
                self.done[task] = done

        return compute(self.shop, task, threads=self.each, progress=watch)


@contextmanager
def threads_here(shop: Workshop, n_tasks: int, threads: int) -> Iterator[Threads]:
    """Threads of this process for a number of tasks; leaving this stops the tasks that are not finished."""
    stop = Event()
    each = max(1, threads // max(1, n_tasks))  # fewer tasks than threads: several threads for each
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield Threads(pool, shop, each, stop, {})
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Workers:
    """An executor whose workers open the stage once each; a task is a range of chains and nothing more."""

    executor: Executor
    parcel: Any
    compute: Callable[[Parcel, Task], Result]

    def submit(self, task: Task) -> "Future[Result]":
        """Begin a task as soon as a worker is free."""
        return self.executor.submit(self.compute, self.parcel, task)

    def under_way(self, tasks: set[Task]) -> float:
        """Unknown: workers do not tell before they are done."""
        return 0.0


@contextmanager
def workers_of(executor: Executor, stage: Stage) -> Iterator[Workers]:
    """The executor's workers. The stage reaches them in a file or, in a Dask cluster, through its network."""
    if dask.is_dask(executor):
        parcel = parcel_of(stage)
        yield Workers(executor, dask.send(executor, parcel, parcel.fingerprint), compute_on_dask)
        return
    with temporary_folder() as folder:
        yield Workers(executor, parcel_of(stage, folder / "stage.npz"), compute_sent)


def compute_sent(parcel: Parcel, task: Task) -> Result:
    """Compute a task on a worker."""
    return compute(opened(parcel), task, progress=stop_if_asked)


def compute_on_dask(parcel: Parcel, task: Task) -> Result:
    """Compute a task on a worker of a Dask cluster."""
    with dask.without_profiler():
        return compute(opened(parcel), task)
