"""`meltpoint paper`: the paper's tables and figures, from stored models, a cell at a time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meltpoint.cli.ending import report_errors
from meltpoint.cli.screen import echo, echo_err, progress_bar
from meltpoint.errors import InputError

if TYPE_CHECKING:
    from meltpoint.paper.cells import Cell, Plan
    from meltpoint.paper.models import Inputs
    from meltpoint.paper.results import Record, Results

WHAT = ("table1", "table2", "figure", "all", "page")


def paper(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="table1, table2, figure NAME, all, or page.")],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="log-likelihood-rbms, cd1-500, cd1-20-dbr, omni-pcd-1000 or dbn."
        ),
    ] = None,
    profile: Annotated[str, typer.Option(help="quick (minutes), full or paper (hours).")] = "full",
    steps: Annotated[
        int | None, typer.Option(help="Linear steps of the tables.", show_default="the profile's")
    ] = None,
    models: Annotated[Path, typer.Option(help="Folder of the trained models.")] = Path("zoo"),
    parameters: Annotated[
        Path | None,
        typer.Option(
            help="mnistvh_CD25.mat, the paper's own parameters, for one more row.", show_default="in MODELS"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    threads: Annotated[int | None, typer.Option(help="Threads.", show_default="all cores")] = None,
    docs: Annotated[Path, typer.Option(help="Folder that `page` writes paper.md into.")] = Path("docs"),
    only: Annotated[
        str | None, typer.Option(help="Compute only these models: NAME,NAME.", show_default="all")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the cells that are missing.")] = False,
) -> None:
    """Reproduce the paper's tables and figures from the trained models.

    Every finished cell is kept in the folder of results and not computed again. After Ctrl-C or a crash the
    same command continues where it was. Tables and figures are written to a folder of the profile's name below
    it; their paths go to stdout. `page` computes nothing: it writes the page of the documentation from what is
    there.
    """
    with report_errors():
        from meltpoint.paper.cells import Plan, profile_of
        from meltpoint.paper.models import PARAMETERS, Inputs
        from meltpoint.paper.results import Results
        from meltpoint.runs.store import check_inside, reading_run

        inputs, results = Inputs(models, parameters), Results(out)
        # The page needs no models: what was computed elsewhere belongs on it too.
        kept = what == "page" and results.has_any(PARAMETERS.name)
        plan = Plan(profile_of(profile, steps), parameters=kept or inputs.parameters is not None)
        groups = _restricted(_groups(plan, what, name), only)
        if dry_run:
            _list(groups, inputs, results)
            return
        if what != "page":
            check_inside(out / plan.profile.name / "any table", out)  # not after hours of computing
            _compute(groups, inputs, results, threads)
        with reading_run(out):
            written = _write(plan, what, name, results, docs)
        for path in written:
            echo(path)


def _groups(plan: "Plan", what: str, name: str | None) -> "list[list[Cell]]":
    """The cells of what was asked for."""
    from meltpoint.paper.cells import CURVES, TABLES

    if what not in WHAT or (what == "figure") != (name is not None) or (name and name not in CURVES):
        raise InputError(
            found=" ".join(["paper", what, *([name] if name else [])]),
            expected=f"table1, table2, all, page, or figure and one of {', '.join(CURVES)}",
            remedy="for example: meltpoint paper figure cd1-500 --profile quick",
        )
    if what == "figure":
        return [plan.figure(name or "")]
    if what in ("all", "page"):
        return plan.all()
    return [plan.table(table) for table in TABLES if table == what]


def _restricted(groups: "list[list[Cell]]", only: str | None) -> "list[list[Cell]]":
    """The cells of the models named, or all."""
    if only is None:
        return groups
    names, known = set(only.split(",")), {cell.model for group in groups for cell in group}
    if names - known:
        raise InputError(
            found=f"--only {only}",
            expected=f"names between commas, of {', '.join(sorted(known))}",
            remedy=f"{', '.join(sorted(names - known))} is not among them",
        )
    return [[cell for cell in group if cell.model in names] for group in groups]


def _write(plan: "Plan", what: str, name: str | None, results: "Results", docs: Path) -> list[Path]:
    """Write what was asked for from the cells that are there; gives the paths."""
    from meltpoint.paper.cells import CURVES, TABLES
    from meltpoint.paper.figures import write_figure
    from meltpoint.paper.page import write_page
    from meltpoint.paper.tables import write_table

    if what == "page":
        return write_page(plan, results, docs)
    folder = results.folder / plan.profile.name
    tables = [table for table in TABLES if what in (table, "all")]
    figures = [name] if name else list(CURVES) if what == "all" else []
    return [
        *(path for table in tables for path in write_table(table, plan, results, folder)),
        *(path for figure in figures for path in write_figure(figure, plan, results, folder)),
    ]


def _list(groups: "list[list[Cell]]", inputs: "Inputs", results: "Results") -> None:
    from meltpoint.paper.cells import unique
    from meltpoint.paper.compute import missing, work
    from meltpoint.results.duration import duration

    cells = missing(groups, inputs, results)
    costs = [work(cell, inputs[cell.model]) for cell in cells]
    for cell, cost in zip(cells, costs, strict=True):
        echo(f"{cell.name}  about {duration(cost)}")
    echo_err(
        f"{len(cells)} of {len(unique(groups))} cells are missing: about {duration(sum(costs))} on two cores"
    )


def _compute(groups: "list[list[Cell]]", inputs: "Inputs", results: "Results", threads: int | None) -> None:
    """Compute what is missing, and say what was found."""
    from meltpoint.paper.cells import unique
    from meltpoint.paper.compute import missing, run, work
    from meltpoint.results.duration import duration

    cells = missing(groups, inputs, results)
    whole, left = len(unique(groups)), len(cells)
    expected = duration(sum(work(cell, inputs[cell.model]) for cell in cells))
    echo_err(
        f"{whole} cells, {whole - left} of them are there; the others take about {expected} on two cores"
    )

    def finished(cell: "Cell", record: "Record") -> None:
        nonlocal left
        left -= 1
        echo_err(f"{cell.name}: {_shown(record)}, {duration(record['seconds']['total'])}; {left} remain")

    try:
        with progress_bar() as progress:
            run(cells, inputs, results, threads=threads, progress=progress, finished=finished)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{whole - left} of {whole} cells are kept in {results.folder}: the same command goes on from there"
        ) from None


def _shown(record: "Record") -> str:
    """The number a cell is about, with its error."""
    from meltpoint.paper.results import estimate_from

    estimate = record["result"].get("estimate")
    return "done" if estimate is None else str(estimate_from(estimate))
