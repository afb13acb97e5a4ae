"""The tables as Markdown (ours above the paper's), LaTeX, CSV and JSON."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from meltpoint.paper.cells import BASES
from meltpoint.paper.published import PUBLISHED, STEPS
from meltpoint.paper.rows import Row
from meltpoint.statistics.estimate import Estimate

_ABSENT = "—"
_MARK = " †"
_BRACKET = ("RAISE", "AIS", "gap")
_BASE_NAMES = {"uniform": "uniform", "data": "data base rates"}


def markdown(rows: Sequence[Row]) -> str:
    """Every model twice: our estimates with standard errors, and what the paper has for its own model.

    A dagger marks AIS estimates whose error is not known, because a handful of chains carry them.
    """
    extra = _extra(rows)
    head = ["model", "", *extra, *(f"{name}, {base}" for base in BASES for name in _BRACKET)]
    lines = [_pipes(head), _pipes(["---", "---", *("---:" for _ in head[2:])])]
    for row in rows:
        numbers = zip(_numbers(row, extra), _doubtful(row, extra), strict=True)
        shown = [_shown(estimate) + (_MARK if doubt else "") for estimate, doubt in numbers]
        ours = [row.subject.label, f"{row.steps:,} steps", *shown]
        paper = ["", f"paper, {STEPS:,}", *map(_plain, _published(row, extra))]
        lines += [_pipes(ours), _pipes(paper)]
    return "\n".join(lines) + "\n"


def latex(rows: Sequence[Row]) -> str:
    """A tabular in the paper's form, with standard errors."""
    extra = _extra(rows)
    columns = "l|r|" + "r|" * len(extra) + "|".join("rrr" for _ in BASES)
    over = " & ".join(f"\\multicolumn{{3}}{{c}}{{{_BASE_NAMES[base]}}}" for base in BASES)
    lines = [
        f"\\begin{{tabular}}{{{columns}}}",
        f"\\multicolumn{{{2 + len(extra)}}}{{c}}{{}} & {over} \\\\",
        " & ".join(["Model", "steps", *extra, *(name for _ in BASES for name in _BRACKET)]) + " \\\\ \\hline",
    ]
    for row in rows:
        pairs = zip(_numbers(row, extra), _doubtful(row, extra), strict=True)
        numbers = [_latex(estimate) + ("\\rlap{$^\\dagger$}" if doubt else "") for estimate, doubt in pairs]
        label = row.subject.label.replace("_", "\\_")
        lines.append(" & ".join([label, f"{row.steps:,}", *numbers]) + " \\\\")
    return "\n".join([*lines, "\\end{tabular}"]) + "\n"


def comma_separated(rows: Sequence[Row]) -> str:
    """A line for each model, every number in a column of its own, unrounded; what is missing is empty."""
    extra = _extra(rows)
    names = [*extra, *(f"{base} {name}" for base in BASES for name in _BRACKET)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["model", "steps", *(f"{name}{part}" for name in names for part in ("", " stderr"))])
    for row in rows:
        cells = [
            "" if estimate is None or number is None else repr(number)
            for estimate in _numbers(row, extra)
            for number in ((None, None) if estimate is None else _pair(estimate))
        ]
        writer.writerow([row.subject.label, row.steps, *cells])
    return text.getvalue()


def as_json(rows: Sequence[Row]) -> str:
    """The same as a list of objects, each with the paper's numbers."""
    extra = _extra(rows)
    return json.dumps([_object(row, extra) for row in rows], indent=1, allow_nan=False) + "\n"


def _object(row: Row, extra: Sequence[str]) -> dict[str, Any]:
    numbers = [estimate and estimate.to_dict() for estimate in _numbers(row, extra)]
    names = [*extra, *(f"{base} {name}" for base in BASES for name in _BRACKET)]
    return {
        "model": row.subject.label,
        "steps": row.steps,
        **dict(zip(names, numbers, strict=True)),
        "paper": dict(zip(names, _published(row, extra), strict=True)),
    }


def _extra(rows: Sequence[Row]) -> list[str]:
    """Columns before the brackets: RBMs have an exact value, or CSL, or both."""
    paper = [PUBLISHED[row.subject.label] for row in rows]
    return ["exact", "CSL"] if any(published.csl is not None for published in paper) else []


def _numbers(row: Row, extra: Sequence[str]) -> Iterator[Estimate | None]:
    if extra:
        yield from (row.exact, row.csl)
    for base in BASES:
        bracket = row.brackets.get(base)
        yield from (bracket.conservative, bracket.optimistic, bracket.gap) if bracket else (None,) * 3


def _doubtful(row: Row, extra: Sequence[str]) -> Iterator[bool]:
    """Whether each number rests on an AIS estimate that a handful of chains carry."""
    if extra:
        yield from (False, False)
    for base in BASES:
        bracket = row.brackets.get(base)
        if bracket is None or not bracket.degenerate:
            yield from (False, False, False)
        else:
            yield from (False, True, bracket.gap is not None)


def _published(row: Row, extra: Sequence[str]) -> Iterator[float | None]:
    paper = PUBLISHED[row.subject.label]
    if extra:
        yield from (paper.exact, paper.csl)
    for base in BASES:
        yield from paper.brackets.get(base, (None,) * 3)


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _shown(estimate: Estimate | None) -> str:
    if estimate is None:
        return _ABSENT
    return estimate.value_text(2) if estimate.direction == "exact" else _with_error(estimate)


def _with_error(estimate: Estimate) -> str:
    return f"{estimate.value_text(2)} {estimate.error_text(2)}"


def _plain(number: float | None) -> str:
    return _ABSENT if number is None else f"{number:.2f}"


def _latex(estimate: Estimate | None) -> str:
    if estimate is None:
        return "---"
    text = _shown(estimate).replace("± <", "± {<}").replace("±", "\\pm")
    return f"${text}$" if "(" not in text else f"${estimate.value_text(2)}$"


def _pair(estimate: Estimate) -> tuple[float | None, float | None]:
    kept = estimate.to_dict()
    return kept["value"], kept["stderr"]
