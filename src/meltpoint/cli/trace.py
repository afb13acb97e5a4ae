"""`meltpoint trace`: checkpoints of a training run and a test set in, likelihoods along the run out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    import numpy as np
    from numpy.typing import NDArray

    from meltpoint.results.trace import Trace, TracePoint
    from meltpoint.training.monitor import Epoch

_TRAINING = "training.txt"
"""A file in the trace of a training: what training it is."""

_LAST = "the last of its stage"


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
def trace_screen() -> Iterator[TraceScreen]:
    """A live table with a bar below it on a terminal wide enough, and lines elsewhere; both on stderr."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or console.width < _TABLE_WIDTH:
        with progress_bar() as lines:
            yield TraceScreen(lines)
        return
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Table

    from meltpoint.results.trace import HEAD, trace_row

    table = Table(box=None, pad_edge=False)
    for k, head in enumerate(HEAD):
        table.add_column(head, justify="left" if k in (0, len(HEAD) - 1) else "right", no_wrap=True)
    bar = Bar(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    task = bar.add_task("", total=None)

    def progress(name: str, done: float, total: float) -> None:
        if bar.tasks[0].description != name:
            bar.reset(task, description=printable(name))
        bar.update(task, completed=done, total=total)

    def add(point: "TracePoint") -> None:
        table.add_row(*(printable(cell) for cell in trace_row(point)))

    # The whole table is printed again on stdout.
    with Live(Group(table, bar), console=console, transient=True, refresh_per_second=8):
        yield TraceScreen(progress, add)


def _parts(point: "TracePoint") -> list[str]:
    low, high = point.between
    parts = [f"{point.name}: test {low:.2f} to {high:.2f}"]
    if point.train_between is not None:
        parts.append(f"train {point.train_between[0]:.2f} to {point.train_between[1]:.2f}")
    parts.append(f"{point.seconds:.0f} s")
    return parts if point.sound else [*parts, f"not to be trusted: {point.reason}"]


@dataclass
class TrainingTrace:
    """The trace of a training while it runs: its models and evaluations are kept in OUT.trace beside OUT.npz.

    Examples of Bernoulli units may be `grey`; those of other units are taken as they are.
    `training` is a text that no other training has. It is kept in the folder, and the same training may use this again.
    """

    out: Path
    training: str
    train: "NDArray[np.generic]"
    validation: "NDArray[np.generic]"
    seed: int
    screen: TraceScreen
    grey: bool = True
    points: "list[TracePoint]" = field(default_factory=list)

    def __post_init__(self) -> None:
        """Draw zeros and ones from grey values (`grey`), and take in what an interrupted training has left."""
        from time import monotonic

        from meltpoint.evaluation.trace import Tracer, in_natural_order, load_checkpoint
        from meltpoint.formats.atomic import atomic_write, make_folder
        from meltpoint.formats.models import read_note
        from meltpoint.formats.temporary import remove_abandoned

        self.folder = self.out.with_suffix(".trace")
        remove_abandoned(self.folder)
        continued = self.out.with_suffix(".checkpoint.npz").exists() or self._is_own()
        if self.folder.exists() and not continued and any(self.folder.iterdir()):
            raise InputError(
                found=f"{self.folder}, the trace of another training",
                expected="a new folder",
                remedy="remove it, or choose another --out",
            )
        make_folder(self.folder)
        with atomic_write(self.folder / _TRAINING, follow_links=False) as file:
            file.write(self.training.encode())
        self._begun = monotonic()
        self._tracer = Tracer(
            _bits(self.validation, self.seed, 0) if self.grey else self.validation,
            _bits(self.train, self.seed, 1) if self.grey else self.train,
            self.folder / "runs",
            seed=self.seed,
            progress=self.screen.progress,
        )
        for file in in_natural_order(map(str, self.folder.glob("*.npz"))):
            self._add(Path(file).stem, load_checkpoint(file), last=read_note(file) == _LAST)

    def _is_own(self) -> bool:
        """Whether the folder belongs to exactly this training."""
        from meltpoint.formats.bounded import open_regular

        wanted = self.training.encode()
        try:
            with open_regular(self.folder / _TRAINING, follow_links=False) as file:
                return file.read(len(wanted) + 1) == wanted
        except OSError:
            return False

    def __call__(self, epoch: "Epoch") -> None:
        """Keep and evaluate the model of an epoch that has one."""
        if epoch.model is None:
            return
        from meltpoint.formats.models import save

        name = f"{epoch.stage.replace(' ', '-')}-{epoch.number}"
        if any(point.name == name for point in self.points):
            return
        last = epoch.number == epoch.of
        # What is carried on from one model to the next ends there, also when it is read again.
        save(epoch.model, self.folder / f"{name}.npz", note=_LAST if last else "")
        self._add(name, epoch.model, last)

    def _add(self, name: str, model: Any, last: bool) -> None:
        self.points.append(self._tracer.evaluate(name, model, last))
        self.screen.show(self.points[-1])

    def trace(self) -> "Trace | None":
        """The trace so far, None without a point."""
        from time import monotonic

        from meltpoint.results.trace import Trace

        if not self.points:
            return None
        return Trace(
            tuple(self.points),
            self._tracer.test_examples,
            self._tracer.train_examples,
            DEFAULTS.confidence,
            monotonic() - self._begun,
        )

    def to_dict(self) -> dict[str, Any] | None:
        """The trace so far as plain values."""
        found = self.trace()
        return found.to_dict() if found else None

    def write(self) -> None:
        """Write trace.json and trace.png into the folder, and the table to stderr."""
        from json import dumps

        from meltpoint.formats.atomic import atomic_write
        from meltpoint.results.figures import save_figure

        found = self.trace()
        if found is None:
            return
        with atomic_write(self.folder / "trace.json", follow_links=False) as file:
            file.write(dumps(found.to_dict(), indent=2, allow_nan=False).encode() + b"\n")
        save_figure(found.plot(), self.folder / "trace.png")
        echo_err(str(found))
        echo_err(f"models, trace.json and trace.png: {self.folder}")


def _bits(examples: "NDArray[np.generic]", seed: int, stream: int) -> "NDArray[Any]":
    """Zeros and ones: as they are, or one draw from grey values."""
    from meltpoint.data.binarize import stochastic

    if ((examples == 0) | (examples == 1)).all():
        return examples
    return stochastic(examples, 1.0, seed, (9, 2 + stream))
