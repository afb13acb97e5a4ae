"""`meltpoint compare`: several model files and a test set in, the differences between the models out."""

from pathlib import Path
from typing import Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.evaluate import show_stage
from meltpoint.cli.evaluating import evaluating, to_continue
from meltpoint.cli.inputs import check_output, load_several
from meltpoint.cli.screen import PLOT_FORMATS, echo_err, progress_bar, write_result
from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS
from meltpoint.errors import InputError


@options.takes(
    options.argument(
        "arguments", list[str], "MODEL MODEL... DATA", f"Model files, and last: {options.DATA_HELP}"
    ),
    options.FORMAT_OPTIONS,
    options.TRAIN,
    options.option("name", list[str], "A model's name; once for each model.", shown="names of the files"),
    options.option("baseline", str, "Compare all with the model of this name only.", shown="all pairs"),
    options.option(
        "about",
        str,
        "test-set: these examples only. population: all that they were drawn from.",
        default="test-set",
    ),
    options.BASE,
    options.PARTICLES,
    options.GAP,
    options.option(
        "budget",
        str,
        "Time for all models together, such as 30m, 2h or 90s.",
        shown=f"{BUDGET_OF_GAP} each with --gap",
    ),
    *options.SIZES,
    *options.READING,
    options.option(
        "confidence", float, "Confidence of all differences together.", default=DEFAULTS.confidence
    ),
    options.TOLERANCE,
    options.EVIDENCE,
    options.RUN,
    *options.COMPUTING,
    *options.OUTPUT,
)
def compare(
    arguments: list[str],
    option: list[str] | None,
    name: list[str] | None,
    about: str,
    json: bool,
    plot: Path | None,
    **given: Any,
) -> None:
    """Compare models on the same test examples, with the errors of the differences.

    Exit code 0: the order of all pairs is known, and every report can be trusted. 1: otherwise (the text says why),
    or after Ctrl-C. 2: wrong input. 3: any other failure. 130: Ctrl-C before the first model was done.
    """
    again = to_continue(given["run"])
    with report_errors(again):
        check_output(plot, *PLOT_FORMATS)
        if len(arguments) < 3:
            raise InputError(
                found=f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}",
                expected="two model files or more, and test examples",
                remedy="for example: meltpoint compare a.npz b.npz test.npy",
            )
        import meltpoint as mp

        *files, data = arguments
        models = load_several(files, option, name)
        population: Any = about.replace("-", " ")
        with progress_bar() as progress, evaluating(given, progress) as command:
            examples = command.read(data, next(iter(models.values())))
            found = mp.compare(models, *examples, **command.keywords, about=population, watch=show_stage)
        write_result(found, json, plot)
        if found.interrupted:
            echo_err(f"meltpoint: interrupted: {len(found.reports)} models by then")
            echo_err(again)
    if not found.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)
