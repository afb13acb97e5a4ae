"""What a person sees: progress with remaining time and talk on stderr, errors as sentences."""

import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from meltpoint.errors import InputError, Progress, RunWarning

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

NOT_TO_BE_TRUSTED = 1
WRONG_INPUT = 2
INTERRUPTED = 130
_LINE_SECONDS = 30.0  # between lines where there is no terminal
_WARM_SECONDS = 3.0  # before which a task's remaining time is a guess


def say(text: str) -> None:
    """Talk, on stderr."""
    typer.echo(text, err=True)


@contextmanager
def sentences(after_interruption: str = "") -> Iterator[None]:
    """Turn wrong input into one sentence and exit code 2, and Ctrl-C into one and exit code 130.

    What schedulers send at the end of a job's time counts as Ctrl-C: what is finished is not lost.
    """
    try:
        with _terminated_like_interrupted(), _warnings_as_sentences():
            yield
    except InputError as problem:
        say(f"meltpoint: {problem}")
        raise typer.Exit(WRONG_INPUT) from None
    except KeyboardInterrupt as stop:
        say(f"meltpoint: interrupted: {str(stop) or 'nothing was finished by then'}")
        if after_interruption:
            say(after_interruption)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    # Python lets the main thread alone set what a signal does.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always", RunWarning)
        warnings.showwarning = lambda message, *_, **__: say(f"meltpoint: {message}")
        yield


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress callback: a bar with the remaining time on a terminal, a line now and then elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield _Bars(bar)


class _Bars:
    """One bar at a time, for the task that is being done."""

    def __init__(self, bar: "Bar") -> None:
        self._bar = bar
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, task: str, done: float, total: float) -> None:
        if task not in self._tasks:
            self._tasks[task] = self._bar.add_task(task, total=total)
        self._bar.update(self._tasks[task], completed=done, total=total, visible=done < total)


class _Lines:
    """A line of text every half minute, for logs."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._begun: dict[
            str, tuple[float, float]
        ] = {}  # when each task was first heard of, and how far it was

    def __call__(self, task: str, done: float, total: float) -> None:
        now = time.monotonic()
        begun, done_then = self._begun.setdefault(task, (now, done))
        if now - self._last < _LINE_SECONDS or now - begun < _WARM_SECONDS or not done_then < done < total:
            return
        from meltpoint.report.duration import duration

        self._last = now
        remaining = (now - begun) * (total - done) / (done - done_then)
        say(f"{task}: {done / total:.0%}, {duration(remaining)} remain")
