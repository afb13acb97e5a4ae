"""The tables: their rows, read from finished cells, as Markdown (ours above the paper's), LaTeX, CSV and JSON."""

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import meltpoint as mp
from reproduce.cells import TABLES, Plan
from reproduce.models import BASES, DEEP, PAPER_STEPS, PARAMETERS, SMALL, PaperModel
from reproduce.results import Results, estimate_from, write_file

_ENOUGH_ESS = 5.0  # effective chains, below which an error is not known


class Entry(NamedTuple):
    """An estimate in a row (None where it is not finished), and the effective chains that carry it."""

    estimate: mp.Estimate | None = None
    ess: float = math.inf

    @property
    def few(self) -> bool:
        """Whether so few chains carry it that its error is not known."""
        return self.estimate is not None and not self.ess >= _ENOUGH_ESS

    def __str__(self) -> str:
        if self.estimate is None:
            return "—"
        error = "" if self.estimate.direction == "exact" else f" {self.estimate.error_text(2)}"
        return self.estimate.value_text(2) + error + (" †" if self.few else "")


@dataclass(frozen=True, eq=False)
class Row:
    """One model with one number of steps: what is finished of it, by column."""

    model: PaperModel
    steps: int
    plan: Plan
    results: Results

    def __str__(self) -> str:
        label = self.model.label
        return f"{label} ({self.steps:,} steps)" if self.model is PARAMETERS else label

    @cached_property
    def columns(self) -> dict[str, Entry]:
        """The entries by their names in CSV and JSON; deep models have neither an exact value nor CSL."""
        found = {}
        if self.model not in DEEP:
            csl = self.steps == self.plan.profile.steps
            found["exact"] = self._entry("exact") if self.model in SMALL else Entry()
            found["CSL"] = self._entry("csl") if csl else Entry()
        for base in BASES:
            low, many, high = (self._entry(each, base) for each in ("raise", "raise-n", "ais"))
            found |= {f"{base} RAISE": low, f"{base} RAISE N": many, f"{base} AIS": high}
            found[f"{base} gap"] = Entry()
            if low.estimate and high.estimate:
                value = high.estimate.value - low.estimate.value
                error = math.hypot(high.estimate.stderr, low.estimate.stderr)
                gap = mp.Estimate(value, error, "difference", "both errors")
                found[f"{base} gap"] = Entry(gap, high.ess)
        return found

    def particles_gap(self, base: str) -> Entry:
        """The distance of RAISE with N particles from the AIS estimate of its own forward chains."""
        return self._entry("raise-n", base, "gap")

    @property
    def paper(self) -> dict[str, float | None]:
        """What the paper has in the same columns; it has one particle only."""
        values = dict(self.model.values)
        for base in self.model.bases:
            values[f"{base} gap"] = round(values[f"{base} AIS"] - values[f"{base} RAISE"], 2)
        return {name: values.get(name) for name in self.columns}

    def _entry(self, method: str, base: str | None = None, name: str = "estimate") -> Entry:
        if base and base not in self.model.bases:
            return Entry()
        record = self.results.read(self.plan.cell(self.model, method, base, self.steps if base else None))
        if record is None:
            return Entry()
        result = record["result"]
        # RAISE has as many chains for every example, and no weights that few of them could carry.
        return Entry(estimate_from(result[name]), result.get("ess", math.inf) or 0.0)


def table_rows(table: str, plan: Plan, results: Results) -> list[Row]:
    return [Row(model, steps, plan, results) for model, steps in plan.rows(table)]


def all_rows(plan: Plan, results: Results) -> list[Row]:
    return [row for table in TABLES for row in table_rows(table, plan, results)]


def write_table(table: str, plan: Plan, results: Results, folder: Path) -> list[Path]:
    """Write a table in all four forms; gives the paths."""
    rows = table_rows(table, plan, results)
    forms = {"md": markdown, "tex": latex, "csv": comma_separated, "json": as_json}
    return [write_file(folder / f"{table}.{suffix}", form(rows)) for suffix, form in forms.items()]


def markdown(rows: Sequence[Row]) -> str:
    """Every model twice: our estimates with standard errors, and what the paper has for its own model.

    A dagger marks estimates whose error is not known, because a handful of chains carry them.
    """
    heads = [", ".join(reversed(name.split(" ", 1))) for name in rows[0].columns]
    heads = [head.replace("RAISE N", f"RAISE, {_particles(rows)}") for head in heads]
    lines = [["model", "", *heads], ["---", "---", *("---:" for _ in heads)]]
    for row in rows:
        paper = ["—" if value is None else f"{value:.2f}" for value in row.paper.values()]
        lines.append([row.model.label, f"{row.steps:,} steps", *map(str, row.columns.values())])
        lines.append(["", f"paper, {PAPER_STEPS:,}", *paper])
    return "".join(f"{pipes(line)}\n" for line in lines)


def latex(rows: Sequence[Row]) -> str:
    """A tabular in the paper's form, with standard errors."""
    names = list(rows[0].columns)
    extra = [name for name in names if " " not in name]
    each = (len(names) - len(extra)) // len(BASES)
    titles = [name.partition(" ")[2] or name for name in names]
    titles = [
        title.replace("RAISE N", f"RAISE, {_particles(rows)}".replace("N", "$N$", 1)) for title in titles
    ]
    over = [f"\\multicolumn{{{each}}}{{c}}{{{name}}}" for name in ("uniform", "data base rates")]
    form = "l|r|" + "r|" * len(extra) + "|".join("r" * each for _ in BASES)
    lines = [
        [f"\\multicolumn{{{2 + len(extra)}}}{{c}}{{}}", *over],
        ["Model", "steps", *titles],
        *(
            [row.model.label.replace("_", "\\_"), f"{row.steps:,}", *map(_latex, row.columns.values())]
            for row in rows
        ),
    ]
    head, titled, *body = [" & ".join(line) + " \\\\\n" for line in lines]
    titled = titled.rstrip() + " \\hline\n"
    return "".join([f"\\begin{{tabular}}{{{form}}}\n", head, titled, *body, "\\end{tabular}\n"])


def comma_separated(rows: Sequence[Row]) -> str:
    """A line for each model, every number in a column of its own, unrounded; what is missing is empty."""
    names = [f"{name}{part}" for name in rows[0].columns for part in ("", " stderr")]
    lines = [
        [
            row.model.label,
            row.steps,
            row.plan.profile.forward + 1,
            *(number for entry in row.columns.values() for number in csv_numbers(entry.estimate)),
        ]
        for row in rows
    ]
    return csv_text([["model", "steps", "particles", *names], *lines])


def as_json(rows: Sequence[Row]) -> str:
    """The same as a list of objects, each with the paper's numbers."""
    objects = [
        {"model": row.model.label, "steps": row.steps, "particles": row.plan.profile.forward + 1}
        | {name: entry.estimate and entry.estimate.to_dict() for name, entry in row.columns.items()}
        | {"paper": row.paper}
        for row in rows
    ]
    return json.dumps(objects, indent=1, allow_nan=False) + "\n"


def csv_text(lines: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def csv_numbers(estimate: mp.Estimate | None) -> list[str]:
    """An estimate's value and standard error, unrounded; what is not known is empty."""
    numbers = (estimate.value, estimate.stderr) if estimate else (math.nan, math.nan)
    return [repr(number) if math.isfinite(number) else "" for number in numbers]


def pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _particles(rows: Sequence[Row]) -> str:
    return f"N = {rows[0].plan.profile.forward + 1:,}"


def _latex(entry: Entry) -> str:
    if entry.estimate is None:
        return "---"
    text = str(entry).removesuffix(" †").replace("± <", "± {<}").replace("±", "\\pm")
    text = f"${text}$" if "(" not in text else f"${entry.estimate.value_text(2)}$"
    return text + ("\\rlap{$^\\dagger$}" if entry.few else "")
