"""What `meltpoint paper` does: which cells it computes, and what it writes from them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import meltpoint as mp
from reproduce import compute
from reproduce.cells import CURVES, TABLES, Cell, Plan, profile_of, unique
from reproduce.figures import write_figure
from reproduce.models import PARAMETERS, Inputs
from reproduce.page import duration, write_page
from reproduce.results import Record, Results, estimate_from, refuse_links
from reproduce.tables import write_table


def run(
    what: str,
    name: str | None,
    *,
    profile: str,
    steps: int | None,
    models: Path,
    parameters: Path | None,
    out: Path,
    threads: int | None,
    docs: Path,
    only: str | None,
    dry_run: bool,
    echo: Callable[[str], object],
    echo_err: Callable[[str], object],
    progress_bar: Callable[[], AbstractContextManager[compute.Progress]],
) -> None:
    """Compute what is missing of table1, table2, figure NAME or all, and write it; or write the page."""
    inputs, results = Inputs(models, parameters), Results(out)
    # The page needs no models: what was computed elsewhere belongs on it too.
    kept = what == "page" and results.has_any(PARAMETERS.name)
    plan = Plan(profile_of(profile, steps), parameters=kept or inputs.parameters is not None)
    groups = _restricted(_groups(plan, what, name), only)
    if dry_run or what != "page":
        refuse_links(out / plan.profile.name / "any table", out)  # not after hours of computing
        cells, whole = compute.missing(groups, inputs, results), len(unique(groups))
        costs = [compute.work(cell, inputs[cell.model]) for cell in cells]
        expected = f"about {duration(sum(costs))} on two cores"
        if dry_run:
            for cell, cost in zip(cells, costs, strict=True):
                echo(f"{cell.name}  about {duration(cost)}")
            echo_err(f"{len(cells)} of {whole} cells are missing: {expected}")
            return
        echo_err(f"{whole} cells, {whole - len(cells)} of them are there; the others take {expected}")
        left = len(cells)

        def finished(cell: Cell, record: Record) -> None:
            nonlocal left
            left -= 1
            estimate = record["result"].get("estimate")
            shown = "done" if estimate is None else str(estimate_from(estimate))
            echo_err(f"{cell.name}: {shown}, {duration(record['seconds']['total'])}; {left} remain")

        try:
            with progress_bar() as progress:
                compute.run(cells, inputs, results, threads=threads, progress=progress, finished=finished)
        except KeyboardInterrupt:
            there = f"{whole - left} of {whole} cells are kept in {out}"
            raise KeyboardInterrupt(f"{there}: the same command goes on from there") from None
    for path in _written(plan, what, name, results, docs):
        echo(str(path))


def _groups(plan: Plan, what: str, name: str | None) -> list[list[Cell]]:
    if what == "figure" and name in CURVES:
        return [plan.figure(name)]
    if what in (*TABLES, "all", "page") and name is None:
        return [plan.table(what)] if what in TABLES else plan.all()
    raise mp.InputError(
        found=" ".join(["paper", what, *([name] if name else [])]),
        expected=f"table1, table2, all, page, or figure and one of {', '.join(CURVES)}",
        remedy="for example: meltpoint paper figure cd1-500 --profile quick",
    )


def _restricted(groups: list[list[Cell]], only: str | None) -> list[list[Cell]]:
    """The cells of the models named, or all."""
    known = {cell.model for group in groups for cell in group}
    names = known if only is None else set(only.split(","))
    if names - known:
        raise mp.InputError(
            found=f"--only {only}",
            expected=f"names between commas, of {', '.join(sorted(known))}",
            remedy=f"{', '.join(sorted(names - known))} is not among them",
        )
    return [[cell for cell in group if cell.model in names] for group in groups]


def _written(plan: Plan, what: str, name: str | None, results: Results, docs: Path) -> list[Path]:
    """The paths of what was named, written from the cells that are there."""
    tables = [table for table in TABLES if what in (table, "all")]
    figures = [name] if name else list(CURVES) if what == "all" else []
    folder = results.folder / plan.profile.name
    try:
        if what == "page":
            return write_page(plan, results, docs)
        return [
            *(path for table in tables for path in write_table(table, plan, results, folder)),
            *(path for figure in figures for path in write_figure(figure, plan, results, folder)),
        ]
    except mp.InputError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as problem:
        # Cells with a valid seal may still hold nonsense: anyone can compute the seal.
        raise mp.InputError(
            found=f"{results.folder}, whose cells make no table ({str(problem) or type(problem).__name__})",
            expected="a folder as it was written",
            remedy="restore it from a copy, or begin anew in another folder",
        ) from problem
