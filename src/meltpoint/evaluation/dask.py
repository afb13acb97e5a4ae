"""A Dask cluster's workers: how a stage reaches them, and how they compute undisturbed."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from distributed import get_worker

from meltpoint.evaluation.compute import Result, compute
from meltpoint.evaluation.parcel import Parcel, opened
from meltpoint.evaluation.plan import Task

_lock = Lock()
_under_way = 0
"""Tasks that this worker's threads are computing."""


def send(executor: Any, parcel: Parcel) -> Any:  # noqa: ANN401
    """A Dask future of the parcel, which a task gets as the parcel itself.

    It is the result of a task: workers get it from each other, and if all that have it die it is made again.
    """
    client = executor._client  # there is no public way
    # Dask warns of tasks with more than 10 MB of arguments, and recommends what is done here.
    with warnings.catch_warnings(action="ignore"):
        return client.submit(_pass_on, parcel, key=f"meltpoint-stage-{parcel.fingerprint}")


def compute_sent(parcel: Parcel, task: Task) -> Result:
    """Compute a task on a worker of the cluster."""
    with _unwatched(get_worker()):
        return compute(opened(parcel), task)


@contextmanager
def _unwatched(worker: Any) -> Iterator[None]:  # noqa: ANN401
    """Pause the worker's profiler until its last task is done.

    It looks at the stack a hundred times a second, to see the same compiled call each time, and takes 3% of a core.
    """
    global _under_way
    profiler = worker.periodic_callbacks.get("profile")
    if profiler is None:  # switched off by the cluster's owner
        yield
        return
    with _lock:
        _under_way += 1
        worker.loop.add_callback(profiler.stop)  # it belongs to the loop's thread
    try:
        yield
    finally:
        with _lock:
            _under_way -= 1
            if not _under_way:
                worker.loop.add_callback(profiler.start)


def _pass_on(parcel: Parcel) -> Parcel:
    return parcel
