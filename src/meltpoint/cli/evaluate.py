"""`meltpoint evaluate`: a model file and a test set in, a bracket out."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.inputs import Sequences, check_output, load_model, read_test_and_train
from meltpoint.cli.screen import PLOT_FORMATS, echo_err, echo_parts, echo_report, progress_bar, write_result
from meltpoint.cli.workers import executor_of
from meltpoint.defaults import DEFAULTS

if TYPE_CHECKING:
    from meltpoint.results.stages import StageSummary


def evaluate(
    model: options.ModelFile,
    data: options.TestData,
    option: options.FormatOptions = None,
    train: options.TrainOption = None,
    base: options.BaseOption = None,
    particles: options.ParticlesOption = None,
    gap: options.GapOption = None,
    budget: options.BudgetOption = None,
    steps: options.StepsOption = None,
    schedule: options.ScheduleOption = DEFAULTS.schedule,
    chains: options.ChainsOption = None,
    examples: options.ExamplesOption = None,
    ais_chains: options.AisChainsOption = None,
    seed: options.SeedOption = DEFAULTS.seed,
    binarize: options.BinarizeOption = None,
    alphabet: options.AlphabetOption = None,
    outside: options.OutsideOption = "refuse",
    tolerance: options.ToleranceOption = None,
    evidence: options.EvidenceOption = DEFAULTS.evidence,
    run: options.RunOption = None,
    part: Annotated[
        int, typer.Option(help="1, 2, …: as many other chains, for another --run; join with runs merge.")
    ] = 0,
    threads: options.ThreadsOption = None,
    workers: options.WorkersOption = None,
    cluster: options.ClusterOption = None,
    patience: options.PatienceOption = options.PATIENCE,
    tls_ca_file: options.TlsCaFileOption = None,
    tls_cert: options.TlsCertOption = None,
    tls_key: options.TlsKeyOption = None,
    json: options.JsonOption = False,
    plot: options.PlotOption = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole report as one HTML file.")
    ] = None,
) -> None:
    """Bracket a model's mean test log-probability between RAISE and AIS.

    Exit code 0: the two agree, and other starts found nothing else. 1: otherwise (the verdict says why); or the data
    fit another reading of the parameters much better; or Ctrl-C made the report partial.
    2: wrong input. 3: any other failure, such as a full disk or dead workers. 130: Ctrl-C before
    there was a report.
    """
    again = to_continue(run)
    with report_errors(again):
        check_output(plot, *PLOT_FORMATS)
        check_output(html, ".html", ".htm")
        import meltpoint as mp

        loaded = load_model(model, option)
        tls = tls_ca_file, tls_cert, tls_key
        with executor_of(workers, cluster, patience, *tls) as executor, progress_bar() as progress:
            test_examples, train_examples = read_test_and_train(
                data, train, binarize, seed, progress, loaded, Sequences(alphabet, outside)
            )
            report = mp.evaluate(
                loaded,
                test_examples,
                train_examples,
                base=base,  # pyright: ignore[reportArgumentType]
                particles=particles,
                gap=gap,
                budget=budget,
                steps=steps,
                schedule=schedule,  # pyright: ignore[reportArgumentType]
                chains=chains,
                examples=examples,
                ais_chains=ais_chains,
                seed=seed,
                tolerance=tolerance,
                evidence=evidence,
                run=run,
                part=part,
                executor=executor,
                threads=threads,
                progress=progress,
                watch=show_stage,
                names=_names(model, data, train),
            )
        write_result(report, json, plot, echo_report)
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
    misread = report.conventions is not None and report.conventions.suspected is not None
    if report.interrupted or misread or not report.verdict.trusted:
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


def _names(model: Path, data: str, train: str | None) -> dict[str, str]:
    """What the report calls model and data: what was typed."""
    return {"model": str(model), "test": data} | ({} if train is None else {"train": train})


def to_continue(run: Path | None) -> str:
    """How to go on after an interruption."""
    if run is None:
        return "to be able to continue, add --run FOLDER"
    return f"to continue: {shlex.join(['meltpoint', *sys.argv[1:]])}"
