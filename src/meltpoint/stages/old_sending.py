"""How workers get a model and its data, once: through Dask's network, or in a file that all of them read."""

import platform
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.temporary import temporary_folder
from meltpoint.runs.chunks import read_sealed, write_sealed
from meltpoint.runs.dask import compute_unprofiled, is_dask, send
from meltpoint.runs.fingerprint import fingerprint


@dataclass(frozen=True)
class Payload:
    """Arrays of a stage, or of other work, that are sent to workers: the arrays themselves, or a file with them.

    Payloads with the same fingerprint are equal, so that a worker prepares one of them only.
    """

    fingerprint: str
    content: "dict[str, NDArray[Any]] | Path" = field(compare=False, repr=False)

    def in_file(self, path: Path) -> "Payload":
        """The same in a file that the workers read."""
        write_sealed(path, read_payload(self))
        return Payload(self.fingerprint, path)


def payload_of(arrays: dict[str, NDArray[Any]]) -> Payload:
    """Arrays to be carried along."""
    return Payload(fingerprint(arrays), arrays)


def read_payload(payload: Payload) -> dict[str, NDArray[Any]]:
    """The arrays of a payload, on a worker."""
    if isinstance(payload.content, dict):
        return payload.content
    try:
        return read_sealed(payload.content)
    except InputError as problem:
        raise InputError(
            found=f"{problem.found} on a worker ({platform.node()})",
            expected="workers that see the disk of this machine",
            remedy="use a Dask cluster, where the model travels through the network",
        ) from problem


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
