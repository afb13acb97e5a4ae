"""`meltpoint trace`: checkpoints of a training run and a test set in, likelihoods along the run out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from meltpoint.cli import options
from meltpoint.cli.evaluating import evaluating
from meltpoint.cli.screen import echo_parts
from meltpoint.defaults import TRACE_AIS_CHAINS, TRACE_CHAINS, TRACE_EXAMPLES, TRACE_STEPS
from meltpoint.errors import InputError

if TYPE_CHECKING:
    from meltpoint.results.trace import TracePoint


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
        "those of the data set, if DATA is one",
    ),
    options.BASE,
    options.setting(
        "steps", "Annealing steps.", f"{TRACE_STEPS} at the ends, fewer between where that is enough"
    ),
    options.option("chains", int, "RAISE chains per example.", default=TRACE_CHAINS),
    options.setting("examples", "Test examples RAISE is run for.", f"{TRACE_EXAMPLES}, or all if fewer"),
    options.option("ais_chains", int, "AIS chains.", default=TRACE_AIS_CHAINS),
    options.SEED,
    *options.READING,
    options.setting("confidence", "Confidence of each single interval."),
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
def trace(arguments: list[str], **given: Any) -> None:
    """Bracket the likelihood of test and training examples along a training run.

    Checkpoints are taken in the natural order of their names. Exit code 0: every checkpoint is sound, and other starts
    were asked. 1: otherwise (the text says why), or after Ctrl-C. 2: wrong input. 3: any other failure.
    130: Ctrl-C before the first checkpoint was done.
    """
    with evaluating(given) as command:
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
        with command.computing() as (read, keywords):
            examples = read(data, load_checkpoint(files[0]))
            found = mp.trace(files, *examples, **keywords, watch=show_point)
        command.show(found, f"{len(found.points)} checkpoints by then")


def _files(patterns: list[str]) -> list[str]:
    """The files of all patterns, each once, in natural order."""
    from meltpoint.evaluation.trace import find_checkpoints, in_natural_order

    files: dict[str, None] = {}
    for pattern in patterns:
        found = [pattern] if Path(pattern).is_file() else find_checkpoints(pattern).values()
        files |= dict.fromkeys(map(str, found))
    return in_natural_order(files)


def show_point(point: "TracePoint") -> None:
    """A line for each finished checkpoint: the intervals of test and training examples."""
    low, high = point.between
    train = point.train_between
    echo_parts(
        f"{point.name}: test {low:.2f} to {high:.2f}",
        *([f"train {train[0]:.2f} to {train[1]:.2f}"] if train else []),
        f"{point.seconds:.0f} s",
        *([] if point.sound else [f"not to be trusted: {point.reason}"]),
    )
