"""A Dask cluster's workers: how data reach them once, and how they compute undisturbed."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from distributed import get_worker

_Content = TypeVar("_Content")

_lock = Lock()
_under_way = 0
"""Tasks that this worker's threads are computing."""


def send(executor: Any, content: Any, key: str) -> Any:  # noqa: ANN401
    """A Dask future of some content, which a task gets as the content itself.

    It is the result of a task: workers get it from each other, and if all that have it die it is made again.
    """
    client = executor._client  # there is no public way
    # Dask warns of tasks with more than 10 MB of arguments, and recommends what is done here.
    with warnings.catch_warnings(action="ignore"):
        return client.submit(_identity, content, key=f"meltpoint-stage-{key}")


@contextmanager
def unwatched() -> Iterator[None]:
    """Pause this worker's profiler until its last task is done.

    It looks at the stack a hundred times a second, to see the same compiled call each time, and takes 3% of a core.
    """
    global _under_way
    worker = get_worker()
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


def _identity(content: _Content) -> _Content:
    return content
