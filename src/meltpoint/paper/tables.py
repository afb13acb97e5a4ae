"""The tables: their rows, read from finished cells, as Markdown (ours above the paper's), LaTeX, CSV and JSON."""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meltpoint.paper.cells import BASES, TABLES, PaperBase, Plan, bases_of
from meltpoint.paper.models import DEEP, PAPER_STEPS, PAPER_VALUES, SMALL, PaperModel
from meltpoint.paper.results import Results, write_text
from meltpoint.results.stages import ENOUGH_ESS
from meltpoint.statistics.estimate import Estimate

_ABSENT = "—"
_MARK = " †"
_NAMES = ("RAISE", "RAISE N", "AIS", "gap")
"""The columns of each base distribution, as CSV and JSON call them."""


@dataclass(frozen=True)
class BaseEstimates:
    """RAISE with one and with N particles, and AIS, from one base distribution; None where not finished.

    `ess` are the effective chains of AIS, `forward_ess` those among the forward chains of the N particles.
    """

    conservative: Estimate | None
    particles: Estimate | None
    optimistic: Estimate | None
    particles_gap: Estimate | None = None
    ess: float | None = None
    forward_ess: float | None = None

    @property
    def degenerate(self) -> bool:
        """Whether so few chains carry AIS that its error is not known."""
        return self.optimistic is not None and not (self.ess or 0.0) >= ENOUGH_ESS

    @property
    def few_forward(self) -> bool:
        """Whether so few of the forward chains carry RAISE with N particles that its error is not known."""
        return self.particles is not None and not (self.forward_ess or 0.0) >= ENOUGH_ESS

    @property
    def gap(self) -> Estimate | None:
        """AIS minus RAISE with one particle."""
        if self.conservative is None or self.optimistic is None:
            return None
        return Estimate(
            self.optimistic.value - self.conservative.value,
            math.hypot(self.optimistic.stderr, self.conservative.stderr),
            "difference",
            "both errors",
        )

    @property
    def columns(self) -> list[tuple[Estimate | None, bool]]:
        """The estimates in the order of the columns, each with whether a handful of chains carry it."""
        return [
            (self.conservative, False),
            (self.particles, self.few_forward),
            (self.optimistic, self.degenerate),
            (self.gap, self.degenerate and self.gap is not None),
        ]


@dataclass(frozen=True)
class TableRow:
    """One model with one number of steps and of particles; estimates by base distribution, those the paper has."""

    model: PaperModel
    steps: int
    n_particles: int
    exact: Estimate | None
    csl: Estimate | None
    bases: dict[PaperBase, BaseEstimates]


def table_rows(table: str, plan: Plan, results: Results) -> list[TableRow]:
    """The rows of a table."""
    return [
        TableRow(
            model,
            steps,
            plan.profile.forward + 1,
            exact=results.estimate(plan.exact(model)) if model in SMALL else None,
            csl=results.estimate(plan.csl(model))
            if model not in DEEP and steps == plan.profile.steps
            else None,
            bases={base: base_estimates(model, base, steps, plan, results) for base in bases_of(model)},
        )
        for model, steps in plan.rows(table)
    ]


def all_rows(plan: Plan, results: Results) -> list[TableRow]:
    """The rows of both tables."""
    return [row for table in TABLES for row in table_rows(table, plan, results)]


def base_estimates(
    model: PaperModel, base: PaperBase, steps: int, plan: Plan, results: Results
) -> BaseEstimates:
    """The estimates of a model from one base distribution with so many steps."""
    ais, raise_n = plan.ais(model, base, steps), plan.raise_n(model, base, steps)
    records = [results.read(cell) for cell in (ais, raise_n)]
    ess, forward_ess = (None if record is None else record["result"]["ess"] for record in records)
    return BaseEstimates(
        results.estimate(plan.raise_(model, base, steps)),
        results.estimate(raise_n),
        results.estimate(ais),
        results.estimate(raise_n, "gap"),
        ess,
        forward_ess,
    )


def write_table(table: str, plan: Plan, results: Results, folder: Path) -> list[Path]:
    """Write a table in all four forms; gives the paths."""
    rows = table_rows(table, plan, results)
    texts = {
        ".md": markdown(rows),
        ".tex": latex(rows),
        ".csv": comma_separated(rows),
        ".json": as_json(rows),
    }
    return [write_text(folder / f"{table}{suffix}", text) for suffix, text in texts.items()]


def markdown(rows: Sequence[TableRow]) -> str:
    """Every model twice: our estimates with standard errors, and what the paper has for its own model.

    A dagger marks estimates whose error is not known, because a handful of chains carry them.
    """
    extra = _extra(rows)
    head = ["model", "", *extra, *(f"{name}, {base}" for base in BASES for name in _titles(rows))]
    lines = [pipes(head), pipes(["---", "---", *("---:" for _ in head[2:])])]
    for row in rows:
        shown = [shown_estimate(estimate, few) for estimate, few in _columns(row, extra)]
        paper = [_ABSENT if number is None else f"{number:.2f}" for number in _of_paper(row, extra)]
        lines.append(pipes([row.model.label, f"{row.steps:,} steps", *shown]))
        lines.append(pipes(["", f"paper, {PAPER_STEPS:,}", *paper]))
    return "\n".join(lines) + "\n"


def latex(rows: Sequence[TableRow]) -> str:
    """A tabular in the paper's form, with standard errors."""
    extra = _extra(rows)
    columns = "l|r|" + "r|" * len(extra) + "|".join("r" * len(_NAMES) for _ in BASES)
    bases = {"uniform": "uniform", "data": "data base rates"}
    over = " & ".join(f"\\multicolumn{{{len(_NAMES)}}}{{c}}{{{bases[base]}}}" for base in BASES)
    titles = [title.replace("N = ", "$N$ = ") for title in _titles(rows)]
    lines = [
        f"\\begin{{tabular}}{{{columns}}}",
        f"\\multicolumn{{{2 + len(extra)}}}{{c}}{{}} & {over} \\\\",
        " & ".join(["Model", "steps", *extra, *(title for _ in BASES for title in titles)]) + " \\\\ \\hline",
    ]
    for row in rows:
        numbers = [
            _latex(estimate) + ("\\rlap{$^\\dagger$}" if few else "")
            for estimate, few in _columns(row, extra)
        ]
        label = row.model.label.replace("_", "\\_")
        lines.append(" & ".join([label, f"{row.steps:,}", *numbers]) + " \\\\")
    return "\n".join([*lines, "\\end{tabular}"]) + "\n"


def comma_separated(rows: Sequence[TableRow]) -> str:
    """A line for each model, every number in a column of its own, unrounded; what is missing is empty."""
    extra = _extra(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [f"{name}{part}" for name in _keys(extra) for part in ("", " stderr")]
    writer.writerow(["model", "steps", "particles", *columns])
    for row in rows:
        cells = [text for estimate, _ in _columns(row, extra) for text in csv_numbers(estimate)]
        writer.writerow([row.model.label, row.steps, row.n_particles, *cells])
    return text.getvalue()


def as_json(rows: Sequence[TableRow]) -> str:
    """The same as a list of objects, each with the paper's numbers."""
    extra = _extra(rows)
    return json.dumps([_object(row, extra) for row in rows], indent=1, allow_nan=False) + "\n"


def csv_numbers(estimate: Estimate | None) -> list[str]:
    """An estimate's value and standard error, unrounded; what is not known is empty."""
    kept = estimate.to_dict() if estimate else {}
    return [repr(kept[name]) if kept.get(name) is not None else "" for name in ("value", "stderr")]


def pipes(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def shown_estimate(estimate: Estimate | None, few: bool = False) -> str:
    """An estimate in a Markdown table, with a dagger where few chains carry it."""
    if estimate is None:
        return _ABSENT
    error = "" if estimate.direction == "exact" else f" {estimate.error_text(2)}"
    return estimate.value_text(2) + error + (_MARK if few else "")


def _object(row: TableRow, extra: Sequence[str]) -> dict[str, Any]:
    numbers = [estimate and estimate.to_dict() for estimate, _ in _columns(row, extra)]
    return {
        "model": row.model.label,
        "steps": row.steps,
        "particles": row.n_particles,
        **dict(zip(_keys(extra), numbers, strict=True)),
        "paper": dict(zip(_keys(extra), _of_paper(row, extra), strict=True)),
    }


def _titles(rows: Sequence[TableRow]) -> list[str]:
    """The columns of each base distribution, as readers see them."""
    return [f"RAISE, N = {rows[0].n_particles:,}" if name == "RAISE N" else name for name in _NAMES]


def _keys(extra: Sequence[str]) -> list[str]:
    return [*extra, *(f"{base} {name}" for base in BASES for name in _NAMES)]


def _extra(rows: Sequence[TableRow]) -> list[str]:
    """Columns before those of the bases: RBMs have an exact value, or CSL, or both."""
    return ["exact", "CSL"] if any(PAPER_VALUES[row.model.label].csl is not None for row in rows) else []


def _columns(row: TableRow, extra: Sequence[str]) -> Iterator[tuple[Estimate | None, bool]]:
    """All estimates of a row, each with whether a handful of chains carry it."""
    if extra:
        yield from ((row.exact, False), (row.csl, False))
    for base in BASES:
        found = row.bases.get(base)
        yield from found.columns if found else [(None, False)] * len(_NAMES)


def _of_paper(row: TableRow, extra: Sequence[str]) -> Iterator[float | None]:
    """What the paper has in the columns of a row; it has one particle only."""
    paper = PAPER_VALUES[row.model.label]
    if extra:
        yield from (paper.exact, paper.csl)
    for base in BASES:
        raised, ais, gap = paper.bases.get(base, (None,) * 3)
        yield from (raised, None, ais, gap)


def _latex(estimate: Estimate | None) -> str:
    if estimate is None:
        return "---"
    text = shown_estimate(estimate).replace("± <", "± {<}").replace("±", "\\pm")
    return f"${text}$" if "(" not in text else f"${estimate.value_text(2)}$"
