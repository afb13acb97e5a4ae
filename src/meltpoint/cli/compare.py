"""`meltpoint compare`: several model files and a test set in, their differences and an order out."""

from pathlib import Path
from typing import Annotated

import typer

from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.evaluate import show_stage, to_continue
from meltpoint.cli.inputs import (
    ALPHABET_HELP,
    BINARIZE_HELP,
    DATA_HELP,
    OUTSIDE_HELP,
    SEED_HELP,
    ModelOptions,
    Sequences,
    check_output,
    load_several,
    read_test_and_train,
)
from meltpoint.cli.screen import echo, echo_err, progress_bar
from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS
from meltpoint.errors import InputError


def compare(
    arguments: Annotated[
        list[str], typer.Argument(metavar="MODEL MODEL... DATA", help=f"Model files, and last: {DATA_HELP}")
    ],
    option: ModelOptions = None,
    train: Annotated[
        str | None,
        typer.Option(
            help="Training examples, for base rates and the pilot; never the test set.",
            show_default="those of the data set, if DATA is one",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A model's name; once for each model.", show_default="names of the files"),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="Compare all with the model of this name only.", show_default="all pairs"),
    ] = None,
    about: Annotated[
        str, typer.Option(help="test-set: these very examples. population: what they were drawn from.")
    ] = "test-set",
    base: Annotated[
        str | None,
        typer.Option(
            help="auto, data, model or uniform.", show_default="auto: data with --train, else model"
        ),
    ] = None,
    particles: Annotated[
        int | None,
        typer.Option(help="N of RAISE; 1 is the paper's estimator.", show_default="one more than AIS chains"),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option(
            help="Go on until each value is known to plus or minus so many nats.", show_default="none"
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Time for all models together, such as 30m, 2h or 90s.",
            show_default=f"{BUDGET_OF_GAP} each with --gap",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Annealing steps.", show_default=str(DEFAULTS.steps))
    ] = None,
    schedule: Annotated[
        str, typer.Option(help="friction: steps where a short pilot finds them needed. linear: equal steps.")
    ] = DEFAULTS.schedule,
    chains: Annotated[
        int | None, typer.Option(help="RAISE chains per example.", show_default=str(DEFAULTS.chains))
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(
            help="Test examples RAISE is run for.", show_default=f"{DEFAULTS.examples}, or all if fewer"
        ),
    ] = None,
    ais_chains: Annotated[
        int | None, typer.Option(help="AIS chains.", show_default="as many as RAISE has in all")
    ] = None,
    seed: Annotated[int, typer.Option(help=SEED_HELP)] = DEFAULTS.seed,
    binarize: Annotated[str | None, typer.Option(help=BINARIZE_HELP)] = None,
    alphabet: Annotated[
        str | None, typer.Option(help=ALPHABET_HELP, show_default="protein, or rna or dna by the letters")
    ] = None,
    outside: Annotated[str, typer.Option(help=OUTSIDE_HELP)] = "refuse",
    confidence: Annotated[float, typer.Option(help="Of all differences together.")] = DEFAULTS.confidence,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Gap, in nats, that still counts as agreement.",
            show_default=f"--gap, or {DEFAULTS.tolerance:g}",
        ),
    ] = None,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence/--no-evidence",
            help="Ask other starts for missed modes. Without it no report is trusted.",
        ),
    ] = DEFAULTS.evidence,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep what is finished in this folder; the same command continues there."
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads.", show_default="all cores")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a figure: .png, .pdf or .svg.")] = None,
) -> None:
    """Compare models on the same test examples, with the errors of the differences.

    Exit code 0: the order of all pairs is known, and every report is to be trusted. 1: not so, and the text says why,
    or Ctrl-C came. 2: wrong input. 3: a failure that is not the input's. 130: Ctrl-C before the first model was done.
    """
    again = to_continue(run)
    with report_errors(again):
        if plot is not None:
            check_output(plot, ".png", ".pdf", ".svg")
        if len(arguments) < 3:
            raise InputError(
                found=f"{len(arguments)} argument{'' if len(arguments) == 1 else 's'}",
                expected="two model files or more, and test examples",
                remedy="for example: meltpoint compare a.npz b.npz test.npy",
            )
        import meltpoint as mp
        from meltpoint.report.figures import save_figure

        *files, data = arguments
        models = load_several(files, option, name)
        with progress_bar() as progress:
            test_examples, train_examples = read_test_and_train(
                data,
                train,
                binarize,
                seed,
                progress,
                model=next(iter(models.values())),
                sequences=Sequences(alphabet, outside),
            )
            found = mp.compare(
                models,
                test_examples,
                train_examples,
                baseline=baseline,
                about=about.replace("-", " "),  # pyright: ignore[reportArgumentType]
                base=base,  # pyright: ignore[reportArgumentType]
                particles=particles,
                gap=gap,
                budget=budget,
                steps=steps,
                schedule=schedule,  # pyright: ignore[reportArgumentType]
                tolerance=tolerance,
                chains=chains,
                examples=examples,
                ais_chains=ais_chains,
                seed=seed,
                confidence=confidence,
                evidence=evidence,
                run=run,
                threads=threads,
                progress=progress,
                watch=show_stage,
            )
        if json:
            from json import dumps

            echo(dumps(found.to_dict(), indent=2, allow_nan=False))
        else:
            echo(found)
        if plot is not None:
            save_figure(found.plot(), plot)
            echo_err(f"figure: {plot}")
        if found.interrupted:
            echo_err(f"meltpoint: interrupted: {len(found.reports)} models by then")
            echo_err(again)
    if not found.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)
