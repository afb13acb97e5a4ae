"""Log f of a test set in parts: each is kept as soon as it is finished, and workers compute them as tasks."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import Progress
from meltpoint.kernels.announcing import preparing_kernels
from meltpoint.models import Model
from meltpoint.models.checks import Bits
from meltpoint.models.log_f import LogF
from meltpoint.progress import silent
from meltpoint.runs.chunks import ChunkLayout
from meltpoint.runs.contents import LOG_F, log_f_part_name
from meltpoint.runs.fingerprint import Arrays
from meltpoint.stages.execute import (
    Execution,
    Workers,
    completed_tasks,
    progress_of,
    remote_workers,
    thread_workers,
)
from meltpoint.stages.old_sending import Payload, read_payload
from meltpoint.stages.stage import model_from_arrays, model_to_arrays

_PART = 1024  # examples: a minute of a core at most, and whole blocks of those that are computed at once
_TASK = "unnormalised probabilities"


@dataclass(frozen=True)
class LogFTask:
    """So many examples of the test set, from `first` on."""

    first: int
    count: int

    @property
    def numbers(self) -> NDArray[np.integer]:
        """Their numbers (example,)."""
        return np.arange(self.first, self.first + self.count)

    @property
    def name(self) -> str:
        """Name of the chunk with its results."""
        return log_f_part_name(self.first)


def log_f_layout(examples: int) -> ChunkLayout:
    """What the chunk with log f of so many examples must hold."""
    return {
        **dict.fromkeys(("values", "stderrs", "bound"), ((examples,), "f")),
        "rises": ((examples, 2), "f"),
        "annealed": (("control", None), "f"),
        "positions": (("control",), "iu"),
        "is_exact": ((), "b"),
    }


def log_f_of(model: Model, states: Bits, seed: int, execution: Execution) -> LogF:
    """Log f of every test example (example, visible unit): exact, or estimated in parts, which may take minutes."""
    layout = log_f_layout(len(states))
    kept = execution.store.read(LOG_F, layout)
    if kept is not None:
        return log_f_from_arrays(kept)
    with preparing_kernels(execution.progress or silent):
        one = model.log_f_part(states[:1], np.arange(1), samples=1)
    if one.is_exact:
        found = model.log_f_part(
            states, np.arange(len(states)), threads=execution.threads, progress=execution.progress
        )
    else:
        found = _estimate(model, states, seed, execution).controlled_by(*model.log_f_control(states, seed))
    execution.store.write(LOG_F, _to_arrays(found))
    return found


def _estimate(model: Model, states: Bits, seed: int, execution: Execution) -> LogF:
    """The estimates of all parts; Ctrl-C is passed on, with the finished parts in the store."""
    tasks = [LogFTask(low, min(_PART, len(states) - low)) for low in range(0, len(states), _PART)]
    parts: dict[LogFTask, Arrays | None] = {
        task: execution.store.read(task.name, log_f_layout(task.count)) for task in tasks
    }
    missing = [task for task in tasks if parts[task] is None]
    with _workers(model, states, seed, execution) as workers:
        amounts = {task: task.count for task in tasks}
        look = progress_of(amounts, execution.progress, _TASK, workers.under_way)
        for task, result in completed_tasks(workers.submit, missing, look):
            parts[task] = result
            execution.store.write(task.name, result)
    found = [part for part in parts.values() if part is not None]
    joined = {name: np.concatenate([part[name] for part in found]) for name in _JOINED}
    return LogF(**joined, is_exact=all(part["is_exact"] for part in found))


_JOINED = "values", "stderrs", "bound", "rises"


def log_f_from_arrays(arrays: Arrays) -> LogF:
    """Log f from the arrays of its chunk."""
    return LogF(**{**arrays, "is_exact": bool(arrays["is_exact"])})


def _to_arrays(log_f: LogF) -> dict[str, NDArray[Any]]:
    return {field.name: np.asarray(getattr(log_f, field.name)) for field in fields(log_f)}


@dataclass(frozen=True, eq=False)
class _Job:
    """What the tasks of a test set have in common."""

    model: Model
    states: Bits
    seed: int

    def compute(
        self, task: LogFTask, threads: int = 1, progress: Progress | None = None
    ) -> dict[str, NDArray[Any]]:
        """The arrays of a task, those of `LogF`."""
        states = self.states[task.first : task.first + task.count]
        how: dict[str, Any] = {"seed": self.seed, "threads": threads, "progress": progress}
        return _to_arrays(self.model.log_f_part(states, task.numbers, **how))


def _workers(
    model: Model, states: Bits, seed: int, execution: Execution
) -> "AbstractContextManager[Workers[LogFTask]]":
    """In this process one task after the other, each with all threads."""
    if execution.executor is None:
        job, threads = _Job(model, states, seed), execution.threads
        return thread_workers(lambda task, progress: job.compute(task, threads, progress), 1)
    own = {
        "seed": np.array(str(seed)),  # it may have more than 64 bits
        "states": states,
    }
    return remote_workers(execution, (model_to_arrays(model), own), "log_f", _compute_in_worker)


_loading = Lock()


@lru_cache(maxsize=1)
def _load(model: Payload, examples: Payload) -> _Job:
    arrays = read_payload(examples)
    return _Job(model_from_arrays(read_payload(model)), arrays["states"], int(str(arrays["seed"])))


def _compute_in_worker(model: Payload, examples: Payload, task: LogFTask) -> Arrays:
    with _loading:  # one for all threads of a worker
        job = _load(model, examples)
    return job.compute(task)
