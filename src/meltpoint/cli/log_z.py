"""`meltpoint log-z`: a model file in, its log normaliser from both sides out."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED
from meltpoint.cli.inputs import Reading, check_output, load_model
from meltpoint.cli.screen import PLOT_FORMATS, echo_err, echo_parts, progress_bar, write_result
from meltpoint.defaults import LOG_Z_DEFAULTS
from meltpoint.errors import Progress

if TYPE_CHECKING:
    from meltpoint.models.model import Model
    from meltpoint.results.log_z import ExactLogZ, LogZStage


@options.takes(
    options.MODEL,
    options.FORMAT_OPTIONS,
    options.option(
        "evidence",
        Path,
        "Clamp the observed variables of a UAI evidence file (.evid).",
        "none",
        metavar="FILE",
    ),
    options.GAP,
    options.BUDGET,
    options.setting(
        "base", "auto (a short trial from each chooses), data, model or uniform.", settings=LOG_Z_DEFAULTS
    ),
    options.option("train", str, "Training examples, for the base of data rates."),
    options.BINARIZE,
    options.STEPS,
    options.option("chains", int, "Forward chains.", str(LOG_Z_DEFAULTS.chains)),
    options.option(
        "exact",
        bool,
        "Compute log Z exactly: alone, or with both sides if their sizes are given.",
        "with both sides where it takes a second",
    ),
    options.SEED,
    options.TOLERANCE,
    options.THREADS,
    *options.OUTPUT,
)
def log_z(
    model: Path,
    option: list[str] | None,
    evidence: Path | None,
    train: str | None,
    binarize: str | None,
    json: bool,
    plot: Path | None,
    **given: Any,
) -> None:
    """Bracket a model's log normaliser, log Z, between AIS and states melted back.

    Exit code 0: log Z is known exactly, or the two sides agree, and other starts found nothing else. 1: otherwise
    (the verdict says why), or Ctrl-C made the result partial. 2: wrong input. 3: any other failure. 130: Ctrl-C before
    there was a result.
    """
    check_output(plot, *PLOT_FORMATS)
    import meltpoint as mp
    from meltpoint.formats.uai import read_evidence

    loaded = load_model(model, option)
    clamped = None if evidence is None else read_evidence(evidence)
    asked = plot, train, *(given[name] for name in ("gap", "budget", "steps", "chains"))
    with progress_bar() as progress:
        if given["exact"] and all(each is None for each in asked) and given["base"] == LOG_Z_DEFAULTS.base:
            write_result(_exact(loaded, clamped, given["threads"], progress), json, None)
            return
        if train is not None:
            given["train"] = Reading(progress, given["seed"], binarize).read(train, "train", loaded)
        bracket = mp.log_z(loaded, clamped=clamped, **given, progress=progress, watch=_show)
    document = write_result(bracket, json, plot)
    if document.interrupted:
        echo_err("meltpoint: interrupted: the result is made of what was finished by then")
    if not document.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)


def _exact(
    model: "Model", clamped: dict[int, int] | None, threads: int | None, progress: Progress
) -> "ExactLogZ":
    import meltpoint as mp
    from meltpoint.results.compose import versions
    from meltpoint.results.log_z import ExactLogZ

    begun = time.perf_counter()
    if clamped:
        model = model.given(clamped)
    exact = mp.exact_log_z(model, threads=threads, progress=progress)
    return ExactLogZ(
        repr(model), len(clamped or ()), exact, {"total": time.perf_counter() - begun}, versions()
    )


def _show(stage: "LogZStage") -> None:
    """A line for each finished stage: its size and both sides."""
    echo_parts(
        f"{stage.steps:>9,} steps",
        f"{stage.lower:.2f} to {stage.upper:.2f}",
        stage.within,
        f"effective {stage.ess:,.0f} of {stage.chains:,} chains from base {stage.base}",
    )
