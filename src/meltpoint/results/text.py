"""Documents as text, fit for a terminal of any width and for an appendix."""

import textwrap
from collections.abc import Collection, Sequence

from meltpoint.errors import printable, shortened
from meltpoint.results.document import WIDTH, Document, Estimates, Fact, Table
from meltpoint.results.words import GLUE

_LEAST_WIDTH = 40
_SHORTEST_WORD = 8  # characters that are left of a word in a narrow table


def render_text(document: Document, width: int = WIDTH) -> str:
    """The document as lines of at most this width, 40 or more."""
    width = max(_LEAST_WIDTH, width)
    lines = [*_wrapped(document.title, width), "─" * width]
    for block in document.sections[0].blocks:
        if isinstance(block, Estimates):
            # Values have the same decimals, so that their points are below each other.
            rows = [(f"{label} ", value, error) for label, value, error, _ in block.cells()]
            lines += [*_columns(rows, {0, 2}, " "), ""]
        elif isinstance(block, Table):
            lines += [*_table(block, width), ""]
    lines += [*_wrapped(document.verdict, width), ""]
    return printable("\n".join([*lines, *fact_lines(document.facts, width)]), keep="\n")


def fact_lines(facts: Sequence[Fact], width: int = WIDTH) -> list[str]:
    """Facts below each other, their texts beside their labels."""
    labels = 2 + max((len(fact.label) for fact in facts), default=0)
    return [line for fact in facts for line in _wrapped(fact.text, width, f"{fact.label:<{labels}}")]


def _wrapped(text: str, width: int, label: str = "") -> list[str]:
    """Lines of at most `width` characters, with a label before the first and blanks before the others."""
    lines = textwrap.wrap(text, width, initial_indent=label, subsequent_indent=" " * len(label))
    return [line.replace(GLUE, " ") for line in lines]


def _table(table: Table, width: int) -> list[str]:
    """Lines of a table: two spaces between columns, or one; then long words are cut, then the table is split."""
    rows, words = [table.head, *table.rows], table.words
    lines = _columns(rows, words, "  ")
    if _widest(lines) > width and table.narrow is not None:
        return _table(table.narrow, width)
    if _widest(lines) > width:
        lines = _columns(rows, words, " ")
    if (excess := _widest(lines) - width) <= 0:
        return lines
    longest = max(len(row[k]) for row in table.rows for k in words)
    length = max(_SHORTEST_WORD, longest - excess)
    short = [[shortened(cell, length) if k in words else cell for k, cell in enumerate(row)] for row in rows]
    lines, columns = _columns([table.head, *short[1:]], words, " "), len(table.head)
    if _widest(lines) <= width or columns < 3:
        return lines
    half = columns // 2 + 1
    return [
        *_table(_part(table, range(half)), width),
        "",
        *_table(_part(table, [0, *range(half, columns)]), width),
    ]


def _part(table: Table, columns: Sequence[int]) -> Table:
    head, *rows = ([row[k] for k in columns] for row in [table.head, *table.rows])
    return Table(head, rows, table.caption, [new for new, old in enumerate(columns) if old in table.words])


def _columns(rows: Sequence[Sequence[str]], words: Collection[int], between: str) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        between.join(f"{cell:{'<' if k in words else '>'}{widths[k]}}" for k, cell in enumerate(row)).rstrip()
        for row in rows
    ]


def _widest(lines: Sequence[str]) -> int:
    return max(map(len, lines))
