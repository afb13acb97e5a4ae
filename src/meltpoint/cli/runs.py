"""`meltpoint runs`: look at runs that are kept in folders, and join them."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from meltpoint.cli import options
from meltpoint.cli.ending import NOT_TO_BE_TRUSTED
from meltpoint.cli.inputs import check_output
from meltpoint.cli.screen import as_json, echo, echo_err

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
    from meltpoint.evaluation.stored import read_run
    from meltpoint.runs.contents import LOCK
    from meltpoint.runs.files import is_locked
    from meltpoint.runs.store import reading_run

    check_output(html, ".html", ".htm")
    with reading_run(folder):
        run = read_run(folder)
        described = _described(run, is_locked(folder / LOCK))
        known = _known(run)
        report = None if isinstance(known, str) else known
        if json:
            text = as_json({**described, "report": report and report.to_dict()})
        else:
            from meltpoint.results.document import WIDTH
            from meltpoint.results.text import fact_lines

            so_far = textwrap.fill(known, WIDTH) if isinstance(known, str) else str(known)
            text = "\n".join([*fact_lines(_facts(run, described)), "", so_far])
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
    from meltpoint.evaluation.stored import merge_runs
    from meltpoint.runs.store import reading_run

    with reading_run(", ".join(map(str, folders))):
        report = merge_runs(folders, out)
        text = as_json(report.to_dict()) if json else str(report)
    echo(text)
    if out is not None:
        echo_err(f"joint run: {out}")
    if not report.trusted:
        raise typer.Exit(NOT_TO_BE_TRUSTED)


def _known(run: "StoredRun") -> "Report | str":
    """The report so far, or what is known instead."""
    from meltpoint.errors import InputError
    from meltpoint.results.report import Interrupted

    try:
        return run.report()
    except Interrupted as stop:
        return f"So far: {stop}."
    except InputError:
        return "Nothing is known so far."


def _described(run: "StoredRun", running: bool) -> dict[str, Any]:
    """How far a run is, for machines: of chains and examples how many are finished, and of how many."""
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


def _facts(run: "StoredRun", described: dict[str, Any]) -> "list[Fact]":
    """The same for people."""
    from meltpoint.progress import duration
    from meltpoint.results.document import Fact

    parts, stages = described["parts"], described["stages"]
    state = "finished" if described["finished"] else "stopped; to continue, repeat the call that began it"
    facts = [
        Fact("run", f"{run.folder}, part{'s' if len(parts) > 1 else ''} {', '.join(map(str, parts))}"),
        Fact("state", "being computed now" if described["running"] else state),
    ]
    for stage in stages:
        name = f"part {stage['part']}, stage {stage['stage']}" if len(stages) > 1 else "chains"
        chains, examples = ("{:,} of {:,}".format(*stage[key]) for key in ("ais_chains", "examples"))
        facts.append(Fact(name, f"{chains} AIS chains, {examples} examples"))
    spent = sum(result.seconds for result in run.stages)
    return [*facts, Fact("computed in", f"{duration(spent)} of one core")]
