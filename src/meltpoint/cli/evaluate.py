"""`meltpoint evaluate`: a model file and a test set in, a bracket out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from meltpoint.cli import options
from meltpoint.cli.evaluating import evaluating
from meltpoint.cli.inputs import check_output, load_model
from meltpoint.cli.screen import echo_parts

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
    options.setting("confidence", "Confidence of the interval."),
    options.EVIDENCE,
    options.option("exact", bool, "Compute log Z exactly too.", "where that takes less than a second"),
    options.setting("precision", "Arithmetic of the chains: mixed, float32 or float64."),
    options.RUN,
    options.option(
        "part", int, "1, 2, …: as many other chains, for another --run; join with runs merge.", default=0
    ),
    *options.COMPUTING,
    *options.OUTPUT,
    options.option("html", Path, "Write the whole report as one HTML file.", metavar="FILE"),
)
def evaluate(model: Path, data: str, option: list[str] | None, html: Path | None, **given: Any) -> None:
    """Bracket a model's mean test log-probability between RAISE and AIS.

    Exit code 0: the value is known exactly, or the two agree, and other starts found nothing else. 1: otherwise
    (the verdict says why); or the data fit another reading of the parameters much better; or Ctrl-C made the report
    partial. 2: wrong input. 3: any other failure, such as a full disk or dead workers. 130: Ctrl-C before there was a
    report.
    """
    with evaluating(given) as command:
        check_output(html, ".html", ".htm")
        import meltpoint as mp

        loaded = load_model(model, option)
        names = {"model": str(model), "test": data}
        with command.computing() as (read, keywords):
            test, train = read(data, loaded)
            if train is not None:
                names["train"] = given["train"] or data  # a named data set has its own
            report = mp.evaluate(loaded, test, train, **keywords, watch=show_stage, names=names)
        done, asked = len(report.per_example.log_prob), report.settings.examples
        partial = f"a partial report, from {done:,} of {asked:,} examples"
        best = f"the report of the best of {len(report.stages):,} finished stages"
        command.show(report, partial if done < asked else best, html)


def show_stage(stage: "StageSummary") -> None:
    """A line for each finished stage: its size and both estimates."""
    echo_parts(
        f"{stage.steps:>9,} steps",
        f"RAISE {stage.conservative:.2f}",
        f"AIS {stage.optimistic:.2f}",
        stage.within,
        f"effective {stage.ess:,.0f} of {stage.ais_chains:,} chains",
    )
