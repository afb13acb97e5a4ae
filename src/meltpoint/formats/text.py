"""Tables of numbers as text: one example per line, separated by commas, semicolons or blanks."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.bounded import open_regular, reading
from meltpoint.formats.formats import Format

_SHOWN = 40


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers (row, column), the columns' names if there is a header, and names of columns that are not numbers."""

    values: NDArray[np.float64]
    names: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()


def read_text(path: Path) -> NDArray[np.float64]:
    """Numbers (line, column) of a text table; a first line that is not numbers is taken as its header."""
    with reading(path, Format.TEXT.value), _decoded(open_regular(path)) as file:
        return _parse(file, path, skip_words=False).values


def read_table(path: Path, content: bytes | None = None) -> Table:
    """A text table with the names in its header; columns of words are left out, and named.

    `content` is that of the file, if it was unpacked already.
    """
    with reading(path, Format.TEXT.value):
        source = open_regular(path) if content is None else io.BytesIO(content)
        with _decoded(source) as file:
            return _parse(file, path, skip_words=True)


@dataclass(frozen=True)
class _Layout:
    """Lines up to the end of the header, the header's cells, the separator (None is any blank), the first row."""

    header: int
    names: tuple[str, ...] | None
    separator: str | None
    first: tuple[str, ...]


def _parse(file: TextIO, path: Path, *, skip_words: bool) -> Table:
    layout = _layout(file, path)
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
        raise _first_bad_line(file, path, layout, kept if skip_words else None, problem) from problem
    names = layout.names
    if not skip_words:
        return Table(values, names if names and len(names) == values.shape[1] else None)
    all_names = names or tuple(f"column {k}" for k in range(len(layout.first)))
    words = tuple(all_names[k] for k in range(len(layout.first)) if k not in kept)
    return Table(values, tuple(all_names[k] for k in kept) if names else None, words)


def _decoded(file: BinaryIO) -> TextIO:
    return io.TextIOWrapper(file, encoding="utf-8-sig")


def _layout(file: TextIO, path: Path) -> _Layout:
    """Where the numbers begin and how they are separated."""
    lines = _content(file)
    number, line = next(lines, (0, ""))
    header, names = 0, None
    cells = _cells(line, _separator(line))
    _, second = next(lines, (0, ""))
    second_cells = _cells(second, _separator(second)) if second else []
    if _is_header(cells, second_cells):
        header, names, cells, line = number, tuple(cells), second_cells, second
        if names is not None and len(names) + 1 == len(second_cells):
            names = ("", *names)  # R leaves out the name of the index
        if names is not None and len(names) != len(second_cells):
            names = None
    elif _announces(cells, second_cells):
        header, cells, line = number, second_cells, second
    if not line:
        raise InputError(
            found=f"{path}, a text file without a line of numbers",
            expected="one example per line",
            remedy="check how the file was made",
        )
    return _Layout(header, names, _separator(line), tuple(cells))


def _is_header(cells: list[str], second: list[str]) -> bool:
    """Whether the first line names columns: words, and not the same words in the second line's places."""
    words = [not _is_number(cell) for cell in cells]
    if not any(words):
        return False
    if len(cells) != len(second):
        return True
    # A column of labels without a header has words in both lines, and numbers beside them.
    return all(words) or any(
        is_word and _is_number(cell) for is_word, cell in zip(words, second, strict=True)
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
    file: TextIO, path: Path, layout: _Layout, columns: list[int] | None, problem: ValueError
) -> Exception:
    """Say where the table breaks, in the line numbers an editor shows."""
    width = 0
    file.seek(0)
    for number, line in _content(file):
        if number <= layout.header:
            continue
        cells = _cells(line, layout.separator)
        width = width or len(cells)
        where = f"in line {number} of {path}"
        numeric = cells if columns is None or len(cells) != width else [cells[k] for k in columns]
        bad = next((cell for cell in numeric if not _is_number(cell)), None)
        if bad is not None:
            found = f"{bad[:_SHOWN]!r} {where}" if bad else f"an empty cell {where}"
            return InputError(found=found, expected="a number", remedy="drop, fill or convert it first")
        if len(cells) != width:
            found, expected = f"{len(cells)} values {where}", f"{width}, as in the lines before"
            return InputError(
                found=found, expected=expected, remedy="was the file cut off? correct that line"
            )
    return problem
