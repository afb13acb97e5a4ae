"""How workers get what the items of a batch share, once: through Dask's network, or in a file that all of them read.

Models with arrays of their own travel as these, apart from what is said of them; other objects by the executor's own
pickling. Nothing that is read from a file is unpickled.
"""

import platform
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.fingerprint import fingerprint
from meltpoint.formats.atomic import temporary_folder
from meltpoint.formats.models import from_arrays as model_from_arrays
from meltpoint.models import Model
from meltpoint.runs.batch import Computed, Work, compute_items
from meltpoint.runs.dask import compute_unprofiled, is_dask, send
from meltpoint.runs.processes import stop_if_asked
from meltpoint.runs.records import from_arrays, to_arrays
from meltpoint.runs.sealed import read_sealed, write_sealed
from meltpoint.runs.specification import METHOD


@dataclass(frozen=True)
class Payload:
    """Arrays that are sent to workers: the arrays themselves, or a file with them.

    Payloads with the same fingerprint are equal, so that a worker loads one of them only.
    """

    fingerprint: str
    content: "dict[str, NDArray[Any]] | Path" = field(compare=False, repr=False)

    def in_file(self, path: Path) -> "Payload":
        """The same in a file that the workers read."""
        write_sealed(path, self.read())
        return Payload(self.fingerprint, path)

    def read(self) -> dict[str, NDArray[Any]]:
        """The arrays, on a worker."""
        if isinstance(self.content, dict):
            return dict(self.content)
        try:
            return read_sealed(self.content)
        except InputError as problem:
            raise InputError(
                found=f"{problem.found} on a worker ({platform.node()})",
                expected="workers that see the disk of this machine",
                remedy="use a Dask cluster, where the model travels through the network",
            ) from problem


class Sender:
    """Sends work to the workers of an executor. What was sent before is not sent again."""

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

    def send(self, work: Work[Any], name: str) -> Callable[[int, int], "Future[Any]"]:
        """A function that lets a worker compute the items from one number to before another."""
        others: list[Any] = []
        payload = self._send(to_arrays(work, others), name)
        models = [self._send_model(other) for other in others]
        return lambda first, end: self._submit(_compute, type(work), payload, first, end, *models)

    def _submit(self, compute: Callable[..., Any], *arguments: Any) -> "Future[Any]":  # noqa: ANN401
        if is_dask(self.executor):
            return self.executor.submit(compute_unprofiled, compute, *arguments)
        return self.executor.submit(compute, *arguments)

    def _send(self, arrays: dict[str, NDArray[Any]], name: str) -> Any:  # noqa: ANN401
        """What stands for the arrays among the arguments of a task."""
        key = fingerprint(arrays)
        if key not in self._sent:
            payload = Payload(key, arrays)
            if is_dask(self.executor):
                self._sent[key] = send(self.executor, payload, f"{name}-{key}")
            else:
                if self._folder is None:
                    self._folder = self._stack.enter_context(temporary_folder())
                self._sent[key] = payload.in_file(self._folder / f"{key}.npz")
        return self._sent[key]

    def _send_model(self, other: Any) -> Any:  # noqa: ANN401
        arrays = _model_arrays(other)
        return other if arrays is None else self._send(arrays, "model")


def _model_arrays(other: Any) -> dict[str, NDArray[Any]] | None:  # noqa: ANN401
    """The arrays of a model, None where it has none."""
    parameters = other.arrays() if isinstance(other, Model) else None
    if parameters is None:
        return None
    return {"method": np.array(METHOD), "kind": np.array(other.kind_and_units), **parameters}


_loading = Lock()


@lru_cache(maxsize=1)
def _load_model(payload: Payload) -> Model:
    arrays = payload.read()
    method, kind = int(arrays.pop("method")), str(arrays.pop("kind"))
    if method != METHOD:
        raise InputError(
            found=f"version {method} of the method",
            expected=f"version {METHOD}, that of the meltpoint on {platform.node() or 'this machine'}",
            remedy="install the same meltpoint on all machines",
        )
    return model_from_arrays(kind, list(arrays.values()))


def _load(kind: type[Work[Any]], payload: Payload, *models: Any) -> Work[Any]:  # noqa: ANN401
    # Models first: one of another version of the method is refused before anything else is looked at.
    loaded = [_load_model(model) if isinstance(model, Payload) else model for model in models]
    work = from_arrays(kind, payload.read(), loaded)
    work.prepare(None)  # before two threads can begin to
    return work


_load_once = lru_cache(maxsize=2)(_load)


def _compute(kind: type[Work[Any]], payload: Payload, first: int, end: int, *models: Any) -> Computed:  # noqa: ANN401
    """What a worker does. A model that came as a pickle is a new one each time, which nothing was kept for."""
    load = _load_once if all(isinstance(model, Payload) for model in models) else _load
    with _loading:  # one for all threads of a worker
        work = load(kind, payload, *models)
    return compute_items(work, first, end, stop_if_asked)
