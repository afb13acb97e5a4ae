"""Workers of our own: local processes, and a connection to a Dask cluster."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Any

from meltpoint.errors import InputError
from meltpoint.estimators.checks import check_count

_stop: Event | None = None
"""In a worker process of `processes`: set when its tasks shall end."""

_CONNECT_SECONDS = 10


@contextmanager
def processes(n: int) -> Iterator[Executor]:
    """An executor with n worker processes on this machine; leaving this ends their tasks, finished or not."""
    n = check_count(n, "workers", "as many as there are cores, or leave it out for threads")
    # Spawned, not forked: a copy of a process with running threads may hang.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(n, mp_context=context, initializer=_enlist, initargs=(stop,))
    try:
        yield pool
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """An executor with the workers of the Dask cluster whose scheduler is at this address."""
    try:
        from distributed import Client, KilledWorker
    except ImportError as problem:
        raise InputError(
            found="no Dask on this machine",
            expected="the package distributed, for a cluster",
            remedy="pip install 'meltpoint[cluster]'",
        ) from problem
    try:
        client: Any = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        raise InputError(
            found=f"no Dask scheduler at {address} ({problem})",
            expected="the address that dask scheduler prints, such as tcp://10.0.0.1:8786",
            remedy="start one with: dask scheduler; and workers on each machine with: dask worker ADDRESS",
        ) from problem
    with client:
        try:
            client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except TimeoutError as problem:
            raise InputError(
                found=f"no worker at the Dask scheduler {address}",
                expected="at least one",
                remedy=f"start workers on each machine with: dask worker {address}",
            ) from problem
        try:
            yield client.get_executor()
        except KilledWorker as problem:
            raise InputError(
                found=f"a task at which one worker after the other died ({problem})",
                expected="workers with memory enough for the model",
                remedy="start fewer on each machine, and call again; a run with a folder (--run) continues",
            ) from problem


def heed(_task: str, _done: float, _total: float) -> None:
    """A progress callback for tasks in workers: it ends them when they are told to."""
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt


def _enlist(stop: Event) -> None:
    """Make a process a worker: Ctrl-C in a terminal reaches it too, but it is the main process that decides."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A main process that is killed takes its workers with it: they would wait for tasks for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
