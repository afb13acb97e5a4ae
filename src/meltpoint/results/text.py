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
            lines += [*_estimates(block), ""]
        elif isinstance(block, Table):
            lines += [*_table(block, width), ""]
    for sentence in (document.verdict, *document.warnings):
        lines += [*_wrapped(sentence, width), ""]
    return printable("\n".join([*lines, *fact_lines(document.facts, width)]), keep="\n")


def fact_lines(facts: Sequence[Fact], width: int = WIDTH) -> list[str]:
    """Facts below each other, their texts beside their labels."""
    labels = 2 + max((len(fact.label) for fact in facts), default=0)
    return [line for fact in facts for line in _wrapped(fact.text, width, f"{fact.label:<{labels}}")]


def _wrapped(text: str, width: int, label: str = "") -> list[str]:
    """Lines of at most `width` characters, with a label before the first and blanks before the others."""
    lines = textwrap.wrap(text, width, initial_indent=label, subsequent_indent=" " * len(label))
    return [line.replace(GLUE, " ") for line in lines]


def _estimates(block: Estimates) -> list[str]:
    """Labels, values with their points below each other, and errors."""
    cells = block.cells()
    whole = [len(value.partition(".")[0]) for _, value, _, _ in cells]
    label = 2 + max(len(name) for name, *_ in cells) + max(whole)
    return [
        f"{name:<{label - before}}{value} {error}"
        for (name, value, error, _), before in zip(cells, whole, strict=True)
    ]


def _table(table: Table, width: int) -> list[str]:
    """Lines of a table: two blanks between columns, or one; long words cut; and at last some columns below others."""
    lines = _columns(table.head, table.rows, table.words, "  ")
    if _widest(lines) > width and table.narrow is not None:
        return _table(table.narrow, width)
    if _widest(lines) > width:
        lines = _columns(table.head, table.rows, table.words, " ")
    if (excess := _widest(lines) - width) <= 0:
        return lines
    longest = max(len(row[k]) for row in table.rows for k in table.words)
    length = max(_SHORTEST_WORD, longest - excess)
    rows = [
        [shortened(cell, length) if k in table.words else cell for k, cell in enumerate(row)]
        for row in table.rows
    ]
    cut = _columns(table.head, rows, table.words, " ")
    if _widest(cut) <= width or len(table.head) < 3:
        return cut
    half = len(table.head) // 2 + 1
    left, right = list(range(half)), [0, *range(half, len(table.head))]
    parts = [
        Table(
            [table.head[k] for k in chosen],
            [[row[k] for k in chosen] for row in table.rows],
            table.caption,
            {chosen.index(k) for k in chosen if k in table.words},
        )
        for chosen in (left, right)
    ]
    return [*_table(parts[0], width), "", *_table(parts[1], width)]


def _columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], words: Collection[int], between: str
) -> list[str]:
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    return [
        between.join(
            f"{cell:<{widths[k]}}" if k in words else f"{cell:>{widths[k]}}" for k, cell in enumerate(row)
        ).rstrip()
        for row in [head, *rows]
    ]


def _widest(lines: Sequence[str]) -> int:
    return max(map(len, lines))
