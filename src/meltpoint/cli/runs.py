"""`meltpoint runs`: look at runs that are kept in folders, and join them."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED, report_errors
from meltpoint.cli.inputs import check_output
from meltpoint.cli.screen import echo, echo_err

if TYPE_CHECKING:
    from meltpoint.evaluation.stored import StoredRun
    from meltpoint.results.document import Fact
    from meltpoint.results.report import Report

app = typer.Typer(help="Look at runs that are kept in folders, and join them.", no_args_is_help=True)


@app.command()
@options.takes(
    options.argument("folder", Path, "FOLDER", "A run's folder."),
    options.JSON,
    options.option("html", Path, "Write the report so far as one HTML file.", metavar="FILE"),
)
def show(folder: Path, json: bool, html: Path | None) -> None:
    """Say how far a run is, and what is known by now, with its error. It may be running."""
    with report_errors():
        from meltpoint.evaluation.stored import read_run
        from meltpoint.runs.contents import LOCK
        from meltpoint.runs.files import is_locked
        from meltpoint.runs.store import reading_run

        check_output(html, ".html", ".htm")
        with reading_run(folder):
            run = read_run(folder)
            running = is_locked(folder / LOCK)
            report, known = _known(run)
            if json:
                from json import dumps

                content = {**_as_dict(run, running), "report": report.to_dict() if report else None}
                text = dumps(content, indent=2, allow_nan=False)
            else:
                from meltpoint.results.document import WIDTH
                from meltpoint.results.text import fact_lines

                so_far = str(report) if report else textwrap.fill(known, WIDTH)
                text = "\n".join([*fact_lines(_progress(run, running)), "", so_far])
        echo(text)
        if html is not None and report is not None:
            report.to_html(html)
            echo_err(f"report: {html}")
        elif html is not None:
            echo_err(f"meltpoint: no {html}: the run has no report yet")


@app.command()
@options.takes(
    options.argument("folders", list[Path], "FOLDER...", "Finished runs, of different parts."),
    options.option("out", Path, "Write the joint run to this new folder."),
    options.JSON,
)
def merge(folders: list[Path], out: Path | None, json: bool) -> None:
    """Join runs of the same specification and different --part: the chains of all of them count."""
    with report_errors():
        from meltpoint.evaluation.stored import merge_runs
        from meltpoint.runs.store import reading_run

        with reading_run(", ".join(map(str, folders))):
            report = merge_runs(folders, out)
            if json:
                from json import dumps

                text = dumps(report.to_dict(), indent=2, allow_nan=False)
            else:
                text = str(report)
        echo(text)
        if out is not None:
            echo_err(f"joint run: {out}")
    if not report.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)


def _known(run: "StoredRun") -> "tuple[Report | None, str]":
    """The report so far, or what is known instead."""
    from meltpoint.errors import InputError
    from meltpoint.results.report import Interrupted

    try:
        return run.report(), ""
    except Interrupted as stop:
        return None, f"So far: {stop}."
    except InputError:
        return None, "Nothing is known so far."


def _progress(run: "StoredRun", running: bool) -> "list[Fact]":
    from meltpoint.progress import duration
    from meltpoint.results.document import Fact

    parts = run.specification.parts
    facts = [Fact("run", f"{run.folder}, part{'s' if len(parts) > 1 else ''} {', '.join(map(str, parts))}")]
    facts.append(Fact("state", _state(run, running)))
    for result in run.stages:
        stage, size = result.stage, result.stage.size
        name = f"part {stage.part}, stage {stage.number}" if len(run.stages) > 1 else "chains"
        ais_chains, examples = (int(found.finished.sum()) for found in (result.ais, result.raised))
        facts.append(
            Fact(
                name,
                f"{ais_chains:,} of {size.ais_chains:,} AIS chains, {examples:,} of {size.examples:,} examples",
            )
        )
    spent = sum(result.seconds for result in run.stages)
    return [*facts, Fact("computed in", f"{duration(spent)} of one core")]


def _state(run: "StoredRun", running: bool) -> str:
    if running:
        return "being computed now"
    return "finished" if run.complete else "stopped; to continue, repeat the call that began it"


def _as_dict(run: "StoredRun", running: bool) -> dict[str, Any]:
    return {
        "folder": str(run.folder),
        "finished": run.complete,
        "running": running,
        "parts": list(run.specification.parts),
        "fingerprints": dict(run.specification.fingerprints),
        "stages": [
            {
                "part": result.stage.part,
                "stage": result.stage.number,
                "steps": result.stage.size.steps,
                "ais_chains": [int(result.ais.finished.sum()), result.stage.size.ais_chains],
                "examples": [int(result.raised.finished.sum()), result.stage.size.examples],
            }
            for result in run.stages
        ],
    }
