"""`meltpoint evaluate`: a model file and a test set in, a bracket out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.evaluating import evaluating, to_continue
from meltpoint.cli.inputs import check_output, load_model
from meltpoint.cli.screen import PLOT_FORMATS, echo_err, echo_parts, progress_bar, write_result

if TYPE_CHECKING:
    from meltpoint.results.stages import StageSummary


@options.takes(
    options.MODEL,
    options.DATA,
    options.FORMAT_OPTIONS,
    options.TRAIN,
    options.BASE,
    options.PARTICLES,
    options.GAP,
    options.BUDGET,
    *options.SIZES,
    *options.READING,
    options.TOLERANCE,
    options.CONFIDENCE,
    options.EVIDENCE,
    options.EXACT,
    options.PRECISION,
    options.RUN,
    options.option(
        "part", int, "1, 2, …: as many other chains, for another --run; join with runs merge.", default=0
    ),
    *options.COMPUTING,
    *options.OUTPUT,
    options.HTML,
)
def evaluate(
    model: Path,
    data: str,
    option: list[str] | None,
    json: bool,
    plot: Path | None,
    html: Path | None,
    **given: Any,
) -> None:
    """Bracket a model's mean test log-probability between RAISE and AIS.

    Exit code 0: the two agree, and other starts found nothing else. 1: otherwise (the verdict says why); or the data
    fit another reading of the parameters much better; or Ctrl-C made the report partial.
    2: wrong input. 3: any other failure, such as a full disk or dead workers. 130: Ctrl-C before
    there was a report.
    """
    again = to_continue(given["run"])
    with report_errors(again):
        check_output(plot, *PLOT_FORMATS)
        check_output(html, ".html", ".htm")
        import meltpoint as mp

        loaded = load_model(model, option)
        names = {"model": str(model), "test": data} | ({"train": given["train"]} if given["train"] else {})
        with progress_bar() as progress, evaluating(given, progress) as command:
            examples = command.read(data, loaded)
            report = mp.evaluate(loaded, *examples, **command.keywords, watch=show_stage, names=names)
        write_result(report, json, plot)
        if html is not None:
            report.to_html(html)
            echo_err(f"report: {html}")
        if report.interrupted:
            done, asked = len(report.per_example.log_prob), report.settings.examples
            what = (
                f"a partial report, from {done:,} of {asked:,} examples"
                if done < asked
                else f"the report of the best of {len(report.stages):,} finished stages"
            )
            echo_err(f"meltpoint: interrupted: {what}")
            echo_err(again)
    if not report.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)


def show_stage(stage: "StageSummary") -> None:
    """A line for each finished stage: its size and both estimates."""
    echo_parts(
        (
            f"{stage.steps:>9,} steps",
            f"RAISE {stage.conservative:.2f}",
            f"AIS {stage.optimistic:.2f}",
            stage.within,
            f"effective {stage.ess:,.0f} of {stage.ais_chains:,} chains",
        )
    )
