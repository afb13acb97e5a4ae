"""What a person sees: results on stdout, progress with remaining time and talk on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from meltpoint.cli.signals import interrupts_are_ignored
from meltpoint.errors import Progress, SystemFailure, printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_LINE_SECONDS = 30.0  # between lines where there is no terminal
_WARM_SECONDS = 3.0  # before which a task's remaining time is a guess


def echo(text: object) -> None:
    """Write a result to stdout; texts that come from files are made safe to print."""
    try:
        _write(f"{printable(str(text), keep=chr(10))}\n")
    except OSError as problem:
        raise SystemFailure(
            found=f"an output that cannot be written ({problem.strerror})",
            expected="a file with room, or somebody who reads",
            remedy="send it elsewhere; with --run FOLDER the report is kept there too",
        ) from problem


def _write(text: str) -> None:
    """Write text to stdout, all of it: an unbuffered one (python -u) takes what it can and tells nobody."""
    sys.stdout.flush()
    left = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    while left:
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def echo_err(text: str) -> None:
    """Talk, on stderr. What cannot be said is not worth the result."""
    with suppress(OSError):
        typer.echo(printable(text, keep="\n"), err=True)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress callback: a bar with the remaining time on a terminal, a line now and then elsewhere."""
    from rich.console import Console

    if interrupts_are_ignored():
        echo_err(
            "meltpoint: started in the background, where Ctrl-C does nothing: to end it in order, kill -TERM it"
        )
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
        echo_err(f"{task}: {done / total:.0%}, {duration(remaining)} remain")
