"""`meltpoint log-z`: a model file in, its log normaliser from both sides out."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.inputs import (
    BINARIZE_HELP,
    MODEL_HELP,
    SEED_HELP,
    ModelOptions,
    check_output,
    load_model,
    read_train,
)
from meltpoint.cli.screen import echo, echo_err, echo_parts, progress_bar
from meltpoint.defaults import BUDGET_OF_GAP

if TYPE_CHECKING:
    from meltpoint.report.log_z import LogZStage


def log_z(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    option: ModelOptions = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Clamp the observed variables of a UAI evidence file (.evid).",
            show_default="none",
        ),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option(
            help="Go on until log Z is known to plus or minus so many nats; sizes are then chosen.",
            show_default="none",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Time to spend, such as 30m, 2h or 90s; sizes are then chosen.",
            show_default=f"{BUDGET_OF_GAP} with --gap",
        ),
    ] = None,
    base: Annotated[
        str, typer.Option(help="auto (a short trial from each chooses), data, model or uniform.")
    ] = "auto",
    train: Annotated[str | None, typer.Option(help="Training examples, for the base of data rates.")] = None,
    binarize: Annotated[str | None, typer.Option(help=BINARIZE_HELP)] = None,
    steps: Annotated[int | None, typer.Option(help="Annealing steps.", show_default="3000")] = None,
    chains: Annotated[int | None, typer.Option(help="Forward chains.", show_default="400")] = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--no-exact",
            help="Compute log Z exactly too, and melt exact samples.",
            show_default="where that takes a second",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help=SEED_HELP)] = 0,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Distance of the sides, in nats, that counts as agreement.", show_default="--gap, or 1"
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads.", show_default="all cores")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a figure: .png, .pdf or .svg.")] = None,
) -> None:
    """Bracket a model's log normaliser, log Z, between AIS and states melted back.

    Exit code 0: the two sides agree, and other starts found nothing else. 1: not so, and the verdict says why, or
    Ctrl-C made the result partial. 2: wrong input. 3: a failure that is not the input's. 130: Ctrl-C before there was
    a result.
    """
    with report_errors():
        if plot is not None:
            check_output(plot, ".png", ".pdf", ".svg")
        import meltpoint as mp
        from meltpoint.importers.evidence import read_evidence
        from meltpoint.report.figures import save_figure
        from meltpoint.report.log_z_text import render_log_z

        loaded = load_model(model, option)
        clamped = None if evidence is None else read_evidence(evidence)
        with progress_bar() as progress:
            bracket = mp.log_z(
                loaded,
                clamped=clamped,
                train=None if train is None else read_train(train, binarize, seed, progress, model=loaded),
                base=base,  # pyright: ignore[reportArgumentType]
                gap=gap,
                budget=budget,
                steps=steps,
                chains=chains,
                exact=exact,
                seed=seed,
                tolerance=tolerance,
                threads=threads,
                progress=progress,
                watch=_show,
            )
        if json:
            from json import dumps

            echo(dumps(bracket.to_dict(), indent=2, allow_nan=False))
        else:
            echo(render_log_z(bracket, shutil.get_terminal_size().columns - 1))
        if plot is not None:
            save_figure(bracket.plot(), plot)
            echo_err(f"figure: {plot}")
        if bracket.interrupted:
            echo_err("meltpoint: interrupted: the result is made of what was finished by then")
    if bracket.interrupted or not bracket.verdict.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)


def _show(stage: "LogZStage") -> None:
    """A line for every stage: the two sides closing in."""
    echo_parts(
        (
            f"{stage.steps:>9,} steps",
            f"{stage.lower:.2f} to {stage.upper:.2f}",
            f"within ± {stage.half_width:.2f}",
            f"effective {stage.ess:,.0f} of {stage.chains:,} chains from base {stage.base}",
        )
    )
