"""What a person sees: progress with remaining time and talk on stderr, errors as sentences."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from meltpoint.errors import InputError, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

WRONG_INPUT = 2
INTERRUPTED = 130
_QUIET_SECONDS = 1.0  # work that is done by then needs no bar
_LINE_SECONDS = 30.0  # between lines where there is no terminal


def say(text: str) -> None:
    """Talk, on stderr."""
    typer.echo(text, err=True)


@contextmanager
def sentences() -> Iterator[None]:
    """Turn wrong input into one sentence and exit code 2, and Ctrl-C into exit code 130."""
    try:
        yield
    except InputError as problem:
        say(f"meltpoint: {problem}")
        raise typer.Exit(WRONG_INPUT) from None
    except KeyboardInterrupt:
        say("meltpoint: interrupted before anything was finished")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress callback: a bar with the remaining time on a terminal, a line now and then elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        bars = _Bars(Progress(*columns, console=console, transient=True))
        try:
            yield bars
        finally:
            bars.bar.stop()
    else:
        yield _Lines()


class _Bars:
    """One bar per task, shown once the work has lasted a moment."""

    def __init__(self, bar: "Bar") -> None:
        self.bar = bar
        self._tasks: dict[str, TaskID] = {}
        self._start = time.monotonic()

    def __call__(self, task: str, done: float, total: float) -> None:
        if task not in self._tasks:
            self._tasks[task] = self.bar.add_task(task, total=total)
        self.bar.update(self._tasks[task], completed=done, total=total)
        if not self.bar.live.is_started and time.monotonic() - self._start > _QUIET_SECONDS:
            self.bar.start()


class _Lines:
    """A line of text every half minute, for logs."""

    def __init__(self) -> None:
        self._task = ""
        self._begun = self._last = time.monotonic()

    def __call__(self, task: str, done: float, total: float) -> None:
        now = time.monotonic()
        if task != self._task:
            self._task, self._begun = task, now
        if now - self._last < _LINE_SECONDS or not 0 < done < total:
            return
        self._last = now
        remaining = (now - self._begun) * (total - done) / done
        say(f"{task}: {done / total:.0%}, {remaining:.0f} s remain")
