"""`meltpoint evaluate`: a model file and a test set in, a bracket out."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.inputs import (
    ALPHABET_HELP,
    BINARIZE_HELP,
    DATA_HELP,
    MODEL_HELP,
    OUTSIDE_HELP,
    SEED_HELP,
    ModelOptions,
    Sequences,
    check_output,
    load_model,
    read_test_and_train,
)
from meltpoint.cli.screen import echo, echo_err, echo_parts, echo_report, progress_bar
from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS
from meltpoint.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from meltpoint.report.stages import StageSummary
    from meltpoint.workers.dask import TLS


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    data: Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)],
    option: ModelOptions = None,
    train: Annotated[
        str | None,
        typer.Option(
            help="Training examples, for base rates and the pilot; never the test set.",
            show_default="those of the data set, if DATA is one",
        ),
    ] = None,
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
            help="Go on until the value is known to plus or minus so many nats; sizes are then chosen.",
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
    steps: Annotated[
        int | None,
        typer.Option(help="Annealing steps. More steps, smaller gap.", show_default=str(DEFAULTS.steps)),
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
    part: Annotated[
        int, typer.Option(help="1, 2, …: as many other chains, for another --run; join with runs merge.")
    ] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads.", show_default="all cores")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes, in place of threads.", show_default="none")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Use the Dask cluster with this scheduler.")
    ] = None,
    patience: Annotated[
        float, typer.Option(help="Seconds to wait for a worker of the cluster when there is none.")
    ] = 60.0,
    tls_ca_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TLS: the authority's certificate, for tls:// clusters."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: our certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS: its private key.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a figure: .png, .pdf or .svg.")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole report as one HTML file.")
    ] = None,
) -> None:
    """Bracket a model's mean test log-probability between RAISE and AIS.

    Exit code 0: the two agree, and other starts found nothing else. 1: not so, and the verdict says why; or the data
    fit another reading of the parameters better by far; or Ctrl-C made the report partial.
    2: wrong input. 3: a failure that is not the input's, such as a full disk or dead workers. 130: Ctrl-C before
    there was a report.
    """
    again = to_continue(run)
    with report_errors(again):
        if plot is not None:
            check_output(plot, ".png", ".pdf", ".svg")
        if html is not None:
            check_output(html, ".html", ".htm")
        import meltpoint as mp
        from meltpoint.report.figures import save_figure

        loaded = load_model(model, option)
        tls = _tls(tls_ca_file, tls_cert, tls_key)
        with _executor(workers, cluster, patience, tls) as executor, progress_bar() as progress:
            test_examples, train_examples = read_test_and_train(
                data,
                train,
                binarize,
                seed,
                progress,
                model=loaded,
                sequences=Sequences(alphabet, outside),
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
        if json:
            from json import dumps

            echo(dumps(report.to_dict(), indent=2, allow_nan=False))
        else:
            echo_report(report)
        if plot is not None:
            save_figure(report.plot(), plot)
            echo_err(f"figure: {plot}")
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
    """A line for every stage: the two numbers closing in."""
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


@contextmanager
def _executor(
    workers: int | None, address: str | None, patience: float, tls: "TLS | None"
) -> "Iterator[Executor | None]":
    """Processes, the workers of a cluster, or nothing: threads."""
    if workers is not None and address is not None:
        raise InputError(
            found="both --workers and --cluster",
            expected="one of them",
            remedy="leave out --workers: the cluster has workers of its own",
        )
    if workers is None and address is None:
        yield None
        return
    if workers is not None:
        from meltpoint.workers.processes import processes

        with processes(workers) as executor:
            yield executor
        return
    from meltpoint.workers.dask import dask_cluster

    def notify(text: str) -> None:
        echo_err(f"meltpoint: {text}")

    with dask_cluster(str(address), patience=patience, tls=tls, notify=notify) as executor:
        yield executor


def _tls(ca_file: Path | None, cert: Path | None, key: Path | None) -> "TLS | None":
    """The files of an encrypted connection, None without any."""
    if ca_file is None and cert is None and key is None:
        return None
    if ca_file is None or cert is None or key is None:
        raise InputError(
            found="some of --tls-ca-file, --tls-cert and --tls-key",
            expected="all three of them, or none",
            remedy="add the others: both sides of a connection show a certificate",
        )
    from meltpoint.workers.dask import TLS

    return TLS(ca_file, cert, key)
