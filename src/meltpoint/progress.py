"""Progress display: a bar on a terminal or in a notebook, a line a minute in a log, or the caller's own tqdm."""

from __future__ import annotations

import html
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from meltpoint.errors import InputError, Progress, printable

if TYPE_CHECKING:
    from rich.console import Console

COMPILING = "compiling kernels, once per machine"
"""The task of compiling, which takes some seconds of the first call on a machine."""

_LINE_SECONDS = 60.0  # between lines where there is no terminal
_WARM_SECONDS = 3.0  # before which a task's remaining time is a guess
_NOTEBOOK_SECONDS = 0.2


def silent(_task: str, _done: float, _total: float) -> None:
    """Progress that is not shown."""


@contextmanager
def shown_progress(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """What `progress` stands for, as a callback: True is a display, a tqdm class or object one of its bars."""
    if progress is True:
        with display() as callback:
            yield callback
    elif _is_tqdm(progress):
        with closing(_TqdmBars(progress)) as bars:
            yield bars
    elif progress is None or progress is False or callable(progress):
        yield progress or None
    else:
        raise InputError(
            found=f"progress={type(progress).__name__}",
            expected="a function progress(task, done, total), True, or a tqdm class",
            remedy="leave it out to see nothing",
        )


@contextmanager
def display() -> Iterator[Progress]:
    """A progress callback: a bar in a notebook or on a terminal, elsewhere a line a minute on stderr."""
    if notebook() is not None:
        yield _NotebookBar()
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield Lines(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201  as was asked for
        return
    with terminal_bars(console) as bars:
        yield bars


@contextmanager
def terminal_bars(console: Console) -> Iterator[TerminalBars]:
    """A bar at the bottom of a terminal that is gone in the end; what the console prints goes above it."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    task = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        TextColumn("{task.description}", markup=False, table_column=task),
        BarColumn(bar_width=max(8, min(40, console.width // 4))),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        yield TerminalBars(bar)


class _Compilation:
    """Writes how long kernels were compiled, where that took a while."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write, self._begun = write, math.inf

    def look(self, task: str, done: float, total: float) -> None:
        """See a report of progress."""
        if task != COMPILING:
            return
        took = time.monotonic() - self._begun
        self._begun = time.monotonic() if done < total else math.inf
        if done >= total and took >= _WARM_SECONDS:
            self._write(f"{COMPILING}: took {duration(took)}")


class TerminalBars:
    """One bar at a time, for the task that is being done."""

    def __init__(self, bar: Any) -> None:  # noqa: ANN401
        self._bar = bar
        self._tasks: dict[str, Any] = {}
        self._compilation = _Compilation(partial(bar.console.print, markup=False, highlight=False))

    def __call__(self, task: str, done: float, total: float) -> None:
        """Show how far a task is, in place of the one before."""
        self._compilation.look(task, done, total)
        if task not in self._tasks:
            self._tasks[task] = self._bar.add_task(printable(task), total=total)
        for name, number in self._tasks.items():
            if name == task:
                self._bar.update(number, completed=done, total=total, visible=done < total)
            else:
                self._bar.update(number, visible=False)


class Lines:
    """A line of text a minute, for logs."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._compilation = _Compilation(write)
        self._last = time.monotonic()
        self._begun: dict[str, tuple[float, float]] = {}  # when each task was first seen, and how far it was

    def __call__(self, task: str, done: float, total: float) -> None:
        """Write a line if it is time."""
        self._compilation.look(task, done, total)
        now = time.monotonic()
        begun, done_then = self._begun.setdefault(task, (now, done))
        if now - self._last < _LINE_SECONDS or now - begun < _WARM_SECONDS or not done_then < done < total:
            return
        self._last = now
        remaining = (now - begun) * (total - done) / (done - done_then)
        self._write(f"{printable(task)}: {done / total:.0%}, {duration(remaining)} remain")


class _NotebookBar:
    """A bar below a notebook's cell, which is empty in the end."""

    def __init__(self) -> None:
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        self._html = HTML
        self._handle = display(HTML(""), display_id=True)
        self._last = 0.0

    def __call__(self, task: str, done: float, total: float) -> None:
        now = time.monotonic()
        if done >= total:
            self._handle.update(self._html(""))
        elif now - self._last >= _NOTEBOOK_SECONDS:
            self._last = now
            bar = f'<progress value="{done:g}" max="{total:g}" aria-label="progress"></progress>'
            name = html.escape(printable(task))
            self._handle.update(self._html(f"<div>{bar} {name} {done / total:.0%}</div>"))


class _TqdmBars:
    """Bars of tqdm, or of a compatible class: one for every task, or the one object that was given."""

    def __init__(self, bars: Any) -> None:  # noqa: ANN401
        self._make = bars if isinstance(bars, type) else None
        self._bar: Any = None if self._make else bars
        self._task: str | None = None

    def __call__(self, task: str, done: float, total: float) -> None:
        if task != self._task:
            self._task = task
            if self._make:
                self.close()
                self._bar = self._make(total=total, desc=task)
            elif hasattr(self._bar, "set_description"):
                self._bar.set_description(task)
        self._bar.total, self._bar.n = total, done
        self._bar.refresh()

    def close(self) -> None:
        """Close the bar, unless it is the caller's own."""
        if self._make and self._bar is not None:
            self._bar.close()


def _is_tqdm(progress: object) -> bool:
    return all(callable(getattr(progress, name, None)) for name in ("update", "refresh", "close"))


def notebook() -> Any:  # noqa: ANN401
    """The shell of the Jupyter kernel that this is, whose output is HTML; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if type(shell).__name__ == "ZMQInteractiveShell" else None


def duration(seconds: float) -> str:
    """Seconds in the two largest units that matter: "3.1 s", "75 s", "3 min 20 s", "2 h 5 min"."""
    if seconds < 119.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
