"""Workers: processes on this machine or those of any executor, and how they get the work of a batch.

What the items of a batch share is pickled once. On a Dask cluster it travels to each worker once, to the workers of
other executors with every chunk. A worker unpickles it once for all chunks and threads.
"""

import io
import multiprocessing
import os
import pickle
import platform
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.synchronize import Event
from typing import Any

from numpy.typing import NDArray

from meltpoint.arguments import Threads, read
from meltpoint.errors import InputError, SystemFailure
from meltpoint.formats.models import from_arrays
from meltpoint.models import Model
from meltpoint.runs.batch import Computed, Work, compute_items
from meltpoint.runs.dask import DaskExecutor, as_dask
from meltpoint.runs.specification import METHOD

_stop: Event | None = None
"""In a worker process of `processes`: set when its tasks are to end."""


@contextmanager
def processes(n: int) -> Iterator[Executor]:
    """An executor with n worker processes on this machine; leaving this ends their tasks, finished or not."""
    n = read(Threads, n, "workers")
    # Spawned, not forked: a copy of a process with running threads may hang.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(n, mp_context=context, initializer=_init_worker, initargs=(stop,))
    try:
        yield pool
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


class Workers:
    """The workers of an executor, to which a batch's work is sent."""

    def __init__(self, executor: Executor) -> None:
        self._executor = as_dask(executor)

    def send(self, work: Work[Any]) -> Callable[[int, int], "Future[Computed]"]:
        """A function that lets a worker compute the items from one number to before another."""
        pickled = dumps(work)
        sent = self._executor.share(pickled) if isinstance(self._executor, DaskExecutor) else pickled
        return lambda first, end: self._submit(_compute, METHOD, sent, first, end)

    def _submit(self, *task: Any) -> "Future[Computed]":  # noqa: ANN401
        try:
            return self._executor.submit(*task)
        except BrokenExecutor:
            raise
        except RuntimeError as problem:
            raise InputError(
                found=f"executor={self._executor!r}, which takes no work ({problem})",
                expected="an executor that is running",
                remedy="call within its with statement, before it is shut down",
            ) from problem

    def watch(self) -> Callable[[], object]:
        """To be called now and then while tasks are under way: a SystemFailure when there are no workers."""
        return self._executor.watch() if isinstance(self._executor, DaskExecutor) else lambda: None

    def explain(self, problem: BaseException) -> BaseException:
        """The error to report in place of one that a task has ended with."""
        if isinstance(self._executor, DaskExecutor):
            problem = self._executor.explain(problem)
        if not isinstance(problem, BrokenExecutor | CancelledError):
            return problem
        return SystemFailure(
            found=f"workers that ended before their work was done ({str(problem) or type(problem).__name__})",
            expected="workers that stay alive",
            remedy="was one killed, or was memory full? Start fewer, and call again; a run with a folder "
            "(run=, --run) continues where it was",
        )


def dumps(work: Work[Any]) -> bytes:
    """A pickle in which models are their arrays: what they have laid out for compiled code would lose its alignment.

    A model without arrays is pickled as it is, if possible also where its class was defined in a notebook.
    """
    cloudpickle = import_module("cloudpickle") if find_spec("cloudpickle") else pickle
    pickler: type[pickle.Pickler] = cloudpickle.Pickler

    class WorkPickler(pickler):
        def persistent_id(self, value: Any) -> tuple[str, list[NDArray[Any]]] | None:  # noqa: ANN401
            arrays = value.arrays() if isinstance(value, Model) else None
            return None if arrays is None else (value.kind_and_units, list(arrays.values()))

    file = io.BytesIO()
    WorkPickler(file).dump(work)
    return file.getvalue()


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, model: tuple[str, list[NDArray[Any]]]) -> Model:
        return from_arrays(*model)


_loading = threading.Lock()


@lru_cache(maxsize=2)
def _load(pickled: bytes) -> Work[Any]:
    work = _Unpickler(io.BytesIO(pickled)).load()
    work.prepare(None)
    return work


def _compute(method: int, pickled: bytes, first: int, end: int) -> Computed:
    """What a worker does. Another version's work might be unpickled without an error, and give other numbers."""
    if method != METHOD:
        raise InputError(
            found=f"version {method} of the method",
            expected=f"version {METHOD}, that of the meltpoint on {platform.node() or 'this machine'}",
            remedy="install the same meltpoint on all machines",
        )
    with _loading:  # one for all threads of a worker
        work = _load(pickled)
    return compute_items(work, first, end, _stop_if_asked)


def _stop_if_asked(_task: str, _done: float, _total: float) -> None:
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt


def _init_worker(stop: Event) -> None:
    """Make a process a worker: Ctrl-C in a terminal reaches it too, but it is the main process that decides."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End this worker when the main process is gone: otherwise it would wait for tasks forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
