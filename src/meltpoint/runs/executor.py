"""An executor that turns the death of workers into one SystemFailure."""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, InvalidStateError
from contextlib import suppress
from threading import Lock
from typing import Any

from meltpoint.errors import SystemFailure

Explain = Callable[[BaseException], BaseException]
"""Gives the error to report in place of one that a task has ended with."""


class ReportingExecutor(Executor):
    """Wraps another executor: its errors are explained, and its unfinished tasks can be ended together."""

    def __init__(self, inner: Executor, explain: Explain | None = None) -> None:
        self.inner = inner
        self._explain = explain or explain_dead_workers
        self._pending: set[Future[Any]] = set()
        self._lock = Lock()
        self._problem: SystemFailure | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":  # noqa: ANN401
        """Begin a task as soon as a worker is free."""
        if self._problem is not None:
            raise self._problem
        outer: Future[Any] = Future()
        with self._lock:
            self._pending.add(outer)
        try:
            inner = self.inner.submit(fn, *args, **kwargs)
        except BaseException as problem:
            with self._lock:
                self._pending.discard(outer)
            raise self._explain(problem) from problem

        def copy(done: "Future[Any]") -> None:
            with self._lock:
                self._pending.discard(outer)
            with suppress(InvalidStateError):  # cancelled, or given up, before it was finished
                problem = CancelledError() if done.cancelled() else done.exception()
                if problem is None:
                    outer.set_result(done.result())
                else:
                    outer.set_exception(self._explain(problem))

        outer.add_done_callback(lambda ended: ended.cancelled() and inner.cancel())
        inner.add_done_callback(copy)
        return outer

    @property
    def busy(self) -> bool:
        """Whether a task is unfinished."""
        with self._lock:
            return bool(self._pending)

    def give_up(self, problem: SystemFailure) -> None:
        """End all unfinished tasks, and those to come, with this error."""
        self._problem = problem
        with self._lock:
            pending, self._pending = self._pending, set()
        for future in pending:
            with suppress(InvalidStateError):
                future.set_exception(problem)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers."""
        self.inner.shutdown(wait=wait, cancel_futures=cancel_futures)


def explain_dead_workers(problem: BaseException) -> BaseException:
    """The error to report when a pool of processes is broken; others stay what they are."""
    if not isinstance(problem, BrokenExecutor | CancelledError):
        return problem
    return SystemFailure(
        found=f"workers that ended before their work was done ({str(problem) or type(problem).__name__})",
        expected="workers that stay alive",
        remedy="was one killed, or was memory full? Start fewer, and call again; a run with a folder "
        "(run=, --run) continues where it was",
    )
