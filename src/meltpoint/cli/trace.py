"""`meltpoint trace`: checkpoints of a training run and a test set in, likelihoods along the run out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.evaluating import evaluating, to_continue
from meltpoint.cli.inputs import check_output
from meltpoint.cli.screen import PLOT_FORMATS, echo_err, echo_parts, progress_bar, write_result
from meltpoint.defaults import DEFAULTS, TRACE_AIS_CHAINS, TRACE_CHAINS, TRACE_EXAMPLES, TRACE_STEPS
from meltpoint.errors import InputError, Progress, printable

if TYPE_CHECKING:
    from meltpoint.results.trace import TracePoint

_TABLE_WIDTH = 78  # of the live table with names of a dozen letters


@options.takes(
    options.argument(
        "arguments",
        list[str],
        "CHECKPOINT... DATA",
        f"Files of models or training checkpoints, or patterns: 'run/*.npz'; last: {options.DATA_HELP}",
    ),
    options.option(
        "train",
        str,
        "Training examples, for base rates, pilots, and to show overfitting.",
        shown="those of the data set, if DATA is one",
    ),
    options.BASE,
    options.option(
        "steps",
        int,
        "Annealing steps.",
        shown=f"{TRACE_STEPS} at the ends, fewer between where that is enough",
    ),
    options.option("chains", int, "RAISE chains per example.", default=TRACE_CHAINS),
    options.option(
        "examples", int, "Test examples RAISE is run for.", shown=f"{TRACE_EXAMPLES}, or all if fewer"
    ),
    options.option("ais_chains", int, "AIS chains.", default=TRACE_AIS_CHAINS),
    options.SEED,
    *options.READING,
    options.option("confidence", float, "Confidence of each single interval.", default=DEFAULTS.confidence),
    options.option(
        "evidence",
        str,
        "Where other starts are asked for missed modes: some (where the schedule is new), all, none.",
        default="some",
    ),
    options.RUN,
    *options.COMPUTING,
    *options.OUTPUT,
)
def trace(arguments: list[str], json: bool, plot: Path | None, **given: Any) -> None:
    """Bracket the likelihood of test and training examples along a training run.

    Checkpoints are taken in the natural order of their names. Exit code 0: every checkpoint is sound, and other starts
    were asked. 1: otherwise (the text says why), or after Ctrl-C. 2: wrong input. 3: any other failure.
    130: Ctrl-C before the first checkpoint was done.
    """
    again = to_continue(given["run"])
    with report_errors(again):
        check_output(plot, *PLOT_FORMATS)
        if len(arguments) < 2:
            raise InputError(
                found="one argument",
                expected="checkpoints and test examples",
                remedy="for example: meltpoint trace 'run/*.npz' test.npy",
            )
        import meltpoint as mp
        from meltpoint.evaluation.trace import load_checkpoint

        *patterns, data = arguments
        files = _files(patterns)
        with trace_screen() as screen, evaluating(given, screen.progress) as command:
            examples = command.read(data, load_checkpoint(files[0]))
            found = mp.trace(files, *examples, **command.keywords, watch=screen.show)
        write_result(found, json, plot)
        if found.interrupted:
            echo_err(f"meltpoint: interrupted: {len(found.points)} checkpoints by then")
            echo_err(again)
    if not found.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)


def _files(patterns: list[str]) -> list[str]:
    """The files of all patterns, each once, in natural order."""
    from meltpoint.evaluation.trace import find_checkpoints, in_natural_order

    files: dict[str, None] = {}
    for pattern in patterns:
        found = [pattern] if Path(pattern).is_file() else find_checkpoints(pattern).values()
        files |= dict.fromkeys(map(str, found))
    return in_natural_order(files)


@dataclass
class TraceScreen:
    """Where a trace is shown while it is made: a progress callback, and `show` for finished checkpoints."""

    progress: Progress
    on_point: Any = None

    def show(self, point: "TracePoint") -> None:
        """Add a checkpoint: a row of the live table, or a line."""
        if self.on_point is not None:
            self.on_point(point)
        else:
            echo_parts(_parts(point))


@contextmanager
def trace_screen(table: bool = True) -> Iterator[TraceScreen]:
    """A live table with a bar below it on a terminal wide enough, and lines elsewhere; both on stderr."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (table and console.is_terminal and console.width >= _TABLE_WIDTH):
        with progress_bar() as lines:
            yield TraceScreen(lines)
        return
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Table

    from meltpoint.results.trace import HEAD, trace_row

    rows = Table(box=None, pad_edge=False)
    for k, head in enumerate(HEAD):
        rows.add_column(head, justify="left" if k in (0, len(HEAD) - 1) else "right", no_wrap=True)
    bar = Bar(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    task = bar.add_task("", total=None)

    def progress(name: str, done: float, total: float) -> None:
        if bar.tasks[0].description != name:
            bar.reset(task, description=printable(name))
        bar.update(task, completed=done, total=total)

    def add(point: "TracePoint") -> None:
        rows.add_row(*(printable(cell) for cell in trace_row(point)))

    # The whole table is printed again on stdout.
    with Live(Group(rows, bar), console=console, transient=True, refresh_per_second=8):
        yield TraceScreen(progress, add)


def _parts(point: "TracePoint") -> list[str]:
    low, high = point.between
    parts = [f"{point.name}: test {low:.2f} to {high:.2f}"]
    if point.train_between is not None:
        parts.append(f"train {point.train_between[0]:.2f} to {point.train_between[1]:.2f}")
    parts.append(f"{point.seconds:.0f} s")
    return parts if point.sound else [*parts, f"not to be trusted: {point.reason}"]
