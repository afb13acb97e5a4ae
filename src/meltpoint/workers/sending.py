"""Getting arrays to an executor's workers once, and tasks that compute with them."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from typing import Any, Self

from numpy.typing import NDArray

from meltpoint.files.temporary import temporary_folder
from meltpoint.workers.dask import compute_unprofiled, is_dask, send
from meltpoint.workers.payload import Payload, payload_of


class Sender:
    """Sends arrays to the workers of an executor: through Dask's network, or in files that are removed at the end.

    A function that is submitted gets what was sent as a `Payload`. What was sent before is not sent again.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._stack = ExitStack()
        self._folder: Any = None
        self._sent: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._sent.clear()
        self._stack.close()

    def send(self, arrays: dict[str, NDArray[Any]], name: str) -> Any:  # noqa: ANN401
        """What stands for the arrays among the arguments of a task."""
        payload = payload_of(arrays)
        if payload.fingerprint not in self._sent:
            self._sent[payload.fingerprint] = self._give(payload, name)
        return self._sent[payload.fingerprint]

    def submit(self, compute: Callable[..., Any], *arguments: Any) -> "Future[Any]":  # noqa: ANN401
        """Begin a task as soon as a worker is free."""
        if is_dask(self.executor):
            return self.executor.submit(compute_unprofiled, compute, *arguments)
        return self.executor.submit(compute, *arguments)

    def _give(self, payload: Payload, name: str) -> Any:  # noqa: ANN401
        if is_dask(self.executor):
            return send(self.executor, payload, f"{name}-{payload.fingerprint}")
        if self._folder is None:
            self._folder = self._stack.enter_context(temporary_folder())
        return payload.in_file(self._folder / f"{name}-{payload.fingerprint}.npz")
