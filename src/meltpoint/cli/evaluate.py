"""`meltpoint evaluate`: a model file and a test set in, a bracket out."""

from pathlib import Path
from typing import Annotated

import typer

from meltpoint.cli.screen import progress_bar, say, sentences

NOT_TO_BE_TRUSTED = 1


def evaluate(
    model: Annotated[Path, typer.Argument(help="The model: .npz of this library, or Salakhutdinov's .mat.")],
    data: Annotated[
        str,
        typer.Argument(
            help="Test examples: .npy, .npz, .mat, .csv or idx file (FILE:NAME for one array), or a data set's name."
        ),
    ],
    train: Annotated[
        str | None, typer.Option(help="Training examples, for base rates. Never the test set.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="data, model or uniform.", show_default="data with --train, else model")
    ] = None,
    steps: Annotated[int, typer.Option(help="Annealing steps. More steps, smaller gap.")] = 3000,
    chains: Annotated[int, typer.Option(help="RAISE chains per example.")] = 4,
    examples: Annotated[
        int | None, typer.Option(help="Test examples RAISE is run for.", show_default="100, or all if fewer")
    ] = None,
    ais_chains: Annotated[
        int | None, typer.Option(help="AIS chains.", show_default="as many as RAISE has in all")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed: the same seed gives the same answer.")] = 0,
    binarize: Annotated[str | None, typer.Option(help="For grey data: stochastic or threshold.")] = None,
    tolerance: Annotated[float, typer.Option(help="Gap, in nats, that still counts as agreement.")] = 1.0,
    threads: Annotated[int | None, typer.Option(help="Threads.", show_default="all cores")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a figure: .png, .pdf or .svg.")] = None,
) -> None:
    """Bracket a model's mean test log-probability between RAISE and AIS.

    Exit code 0: the two agree. 1: they do not, and the verdict says why. 2: wrong input.
    """
    with sentences():
        import meltpoint as mp
        from meltpoint.cli.inputs import read_data
        from meltpoint.report.figures import check_figure_path, save_figure

        if plot is not None:
            check_figure_path(plot)
        loaded = mp.load(model)
        with progress_bar() as progress:
            examples_read = read_data(data, train, binarize, seed, progress)
            report = mp.evaluate(
                loaded,
                examples_read.test,
                examples_read.train,
                base=base,  # pyright: ignore[reportArgumentType]
                steps=steps,
                chains=chains,
                examples=examples,
                ais_chains=ais_chains,
                seed=seed,
                tolerance=tolerance,
                threads=threads,
                progress=progress,
            )
        if json:
            from json import dumps

            typer.echo(dumps(report.to_dict(), indent=2))
        else:
            typer.echo(report)
        if plot is not None:
            save_figure(report.plot(), plot)
            say(f"figure: {plot}")
    if not report.verdict.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)
