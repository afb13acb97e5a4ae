"""Worker processes on this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event

from meltpoint.errors import InputError
from meltpoint.runs.executor import ReportingExecutor

_stop: Event | None = None
"""In a worker process of `processes`: set when its tasks are to end."""


@contextmanager
def processes(n: int) -> Iterator[Executor]:
    """An executor with n worker processes on this machine; leaving this ends their tasks, finished or not."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(
            found=f"workers={n!r}",
            expected="a whole number from 1 on",
            remedy="as many as there are cores, or leave it out for threads",
        )
    # Spawned, not forked: a copy of a process with running threads may hang.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(n, mp_context=context, initializer=_init_worker, initargs=(stop,))
    try:
        yield ReportingExecutor(pool)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def stop_if_asked(_task: str, _done: float, _total: float) -> None:
    """A progress callback for tasks in workers: it ends them when they are to stop."""
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
