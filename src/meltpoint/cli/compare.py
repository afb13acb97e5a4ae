"""`meltpoint compare`: several model files and a test set in, the differences between the models out."""

from typing import Any

from meltpoint.cli import options
from meltpoint.cli.evaluate import show_stage
from meltpoint.cli.evaluating import evaluating
from meltpoint.cli.inputs import load_several
from meltpoint.defaults import BUDGET_OF_GAP
from meltpoint.errors import InputError


@options.takes(
    options.argument(
        "arguments", list[str], "MODEL MODEL... DATA", f"Model files, and last: {options.DATA_HELP}"
    ),
    options.FORMAT_OPTIONS,
    options.TRAIN,
    options.option("name", list[str], "A model's name; once for each model.", "names of the files"),
    options.option("baseline", str, "Compare all with the model of this name only.", "all pairs"),
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
        f"{BUDGET_OF_GAP} each with --gap",
    ),
    *options.SIZES,
    *options.READING,
    options.setting("confidence", "Confidence of all differences together."),
    options.TOLERANCE,
    options.EVIDENCE,
    options.RUN,
    *options.COMPUTING,
    *options.OUTPUT,
)
def compare(
    arguments: list[str], option: list[str] | None, name: list[str] | None, about: str, **given: Any
) -> None:
    """Compare models on the same test examples, with the errors of the differences.

    Exit code 0: the order of all pairs is known, and every report can be trusted. 1: otherwise (the text says why),
    or after Ctrl-C. 2: wrong input. 3: any other failure. 130: Ctrl-C before the first model was done.
    """
    with evaluating(given) as command:
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
        with command.computing() as (read, keywords):
            examples = read(data, next(iter(models.values())))
            found = mp.compare(models, *examples, **keywords, about=population, watch=show_stage)
        command.show(found, f"{len(found.reports)} models by then")
