"""Tables of numbers as text: one example per line, separated by commas, semicolons or blanks."""

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.bounded import described
from meltpoint.formats.format import Format, Table, without_name
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source

_FEWEST = 3  # numbers in a row that number the columns: fewer could be bits


def _recognises(source: Source) -> bool:
    try:
        # Not the final part: the head may end inside a character.
        codecs.getincrementaldecoder("utf-8")().decode(source.head, final=False)
    except UnicodeDecodeError:
        return False
    return source.is_text and source.path.suffix.lower() not in (".pkl", ".pickle")


def _array(source: Source, name: str | None) -> NDArray[Any]:
    """Numbers (line, column); a first line that is not numbers is taken as the header."""
    without_name(source, name)
    return _parse(source, skip_words=False).values


def _table(source: Source, _: Options) -> Table:
    """The numbers with the names in the header; columns of words are left out, and named."""
    return _parse(source, skip_words=True)


@dataclass(frozen=True)
class _Layout:
    """Lines up to the end of the header, the header's cells, the separator (None is any blank), the first row."""

    header: int
    names: tuple[str, ...] | None
    separator: str | None
    first: tuple[str, ...]


def _parse(source: Source, *, skip_words: bool) -> Table:
    with io.TextIOWrapper(source.open(), encoding="utf-8-sig") as file:
        layout = _layout(file, source)
        file.seek(0)
        kept = [k for k, cell in enumerate(layout.first) if _is_number(cell)]
        skip_words = skip_words and 0 < len(kept) < len(layout.first)
        try:
            values = np.loadtxt(
                file,
                delimiter=layout.separator,
                skiprows=layout.header,
                ndmin=2,
                quotechar='"',
                usecols=kept if skip_words else None,
            )
        except ValueError as problem:
            raise _first_bad_line(file, source, layout, kept if skip_words else None, problem) from problem
    names = layout.names
    if not skip_words:
        return Table(values, names if names and len(names) == values.shape[1] else None)
    all_names = names or tuple(f"column {k}" for k in range(len(layout.first)))
    words = tuple(all_names[k] for k in range(len(layout.first)) if k not in kept)
    return Table(values, tuple(all_names[k] for k in kept) if names else None, words)


def _layout(file: TextIO, source: Source) -> _Layout:
    """Where the numbers begin and how they are separated."""
    lines = _content(file)
    number, line = next(lines, (0, ""))
    header, names = 0, None
    cells = _cells(line, _separator(line))
    _, second = next(lines, (0, ""))
    second_cells = _cells(second, _separator(second)) if second else []
    if _is_header(source, cells, second_cells):
        header, names, cells, line = number, tuple(cells), second_cells, second
        if names is not None and len(names) + 1 == len(second_cells):
            names = ("", *names)  # R leaves out the name of the index
        if names is not None and len(names) != len(second_cells):
            names = None
    elif _announces(cells, second_cells):
        header, cells, line = number, second_cells, second
    if not line:
        raise InputError(
            found=f"{source.name}, a text file without a line of numbers",
            expected="one example per line",
            remedy="check how the file was made",
        )
    return _Layout(header, names, _separator(line), tuple(cells))


def _is_header(source: Source, cells: list[str], second: list[str]) -> bool:
    """Whether the first line names the columns. One that may be an example with a missing value is refused."""
    words = [cell for cell in cells if not _is_number(cell)]
    if len(words) in (0, len(cells)) or not second:
        return bool(words)
    # A column of labels without a header has words in both lines, and numbers beside them.
    if len(cells) == len(second) and not any(
        _is_number(below) for cell, below in zip(cells, second, strict=True) if not _is_number(cell)
    ):
        return False
    # The names that pandas gives: 0, 1, 2, … beside an index or labels.
    numbers = [cell for cell in cells if _is_number(cell)]
    if len(numbers) >= _FEWEST and numbers in [[str(k + k0) for k in range(len(numbers))] for k0 in (0, 1)]:
        return True
    raise InputError(
        found=f"{described(words[0]) if words[0] else 'an empty cell'} beside numbers in the first line of "
        f"{source.name}",
        expected="an example, all of it numbers, or names of the columns, none of them a number",
        remedy="fill in the value if it is missing; if these are names, leave that line out",
    )


def _announces(cells: list[str], second: list[str]) -> bool:
    """Whether the first line is that of an alignment in numbers: sequences, columns, states."""
    if len(cells) != 3 or len(second) == 3 or not all(cell.isdigit() for cell in cells):
        return False
    return int(cells[1]) == len(second)


def _content(file: TextIO) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines that hold something besides a comment."""
    for number, line in enumerate(file, start=1):
        content = line.partition("#")[0].strip()
        if content:
            yield number, content


def _separator(line: str) -> str | None:
    return next((mark for mark in ";," if mark in line), None)


def _cells(line: str, separator: str | None) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(separator)]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _first_bad_line(
    file: TextIO, source: Source, layout: _Layout, columns: list[int] | None, problem: ValueError
) -> Exception:
    """Say where the table breaks, in the line numbers an editor shows."""
    width = 0
    file.seek(0)
    for number, line in _content(file):
        if number <= layout.header:
            continue
        cells = _cells(line, layout.separator)
        width = width or len(cells)
        where = f"in line {number} of {source.name}"
        numeric = cells if columns is None or len(cells) != width else [cells[k] for k in columns]
        bad = next((cell for cell in numeric if not _is_number(cell)), None)
        if bad is not None:
            found = f"{described(bad) if bad else 'an empty cell'} {where}"
            return InputError(found=found, expected="a number", remedy="drop, fill or convert it first")
        if len(cells) != width:
            return InputError(
                found=f"{len(cells)} values {where}",
                expected=f"{width}, as in the lines before",
                remedy="was the file cut off? correct that line",
            )
    return problem


FORMAT = Format("text table", (".csv", ".tsv", ".txt"), _recognises, array=_array, examples=_table)
