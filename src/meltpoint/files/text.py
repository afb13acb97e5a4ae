"""Tables of numbers as text: one example per line, separated by commas, semicolons or blanks."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.files.bounded import open_regular, reading
from meltpoint.files.formats import Format

_SHOWN = 40


def read_text(path: Path) -> NDArray[np.float64]:
    """Numbers (line, column) of a text table; a first line that is not numbers is taken as its header."""
    with reading(path, Format.TEXT.value), _open(path) as file:
        header, separator = _layout(file, path)
        file.seek(0)
        try:
            return np.loadtxt(file, delimiter=separator, skiprows=header, ndmin=2, quotechar='"')
        except ValueError as problem:
            raise _first_bad_line(path, header, separator, problem) from problem


def _open(path: Path) -> TextIO:
    return io.TextIOWrapper(open_regular(path), encoding="utf-8-sig")


def _layout(file: TextIO, path: Path) -> tuple[int, str | None]:
    """Number of lines up to the end of the header, and the separator (None is any blank)."""
    lines = _content(file)
    number, line = next(lines, (0, ""))
    header = 0
    if not all(_is_number(cell) for cell in _cells(line, _separator(line))):
        header, (_, line) = number, next(lines, (0, ""))
    if not line:
        raise InputError(
            found=f"{path}, a text file without a line of numbers",
            expected="one example per line",
            remedy="check how the file was made",
        )
    return header, _separator(line)


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


def _first_bad_line(path: Path, header: int, separator: str | None, problem: ValueError) -> Exception:
    """Say where the table breaks, in the line numbers an editor shows."""
    width = 0
    with _open(path) as file:
        for number, line in _content(file):
            if number <= header:
                continue
            cells = _cells(line, separator)
            width = width or len(cells)
            where = f"in line {number} of {path}"
            bad = next((cell for cell in cells if not _is_number(cell)), None)
            if bad is not None:
                found = f"{bad[:_SHOWN]!r} {where}" if bad else f"an empty cell {where}"
                return InputError(found=found, expected="a number", remedy="drop, fill or convert it first")
            if len(cells) != width:
                found, expected = f"{len(cells)} values {where}", f"{width}, as in the lines before"
                return InputError(
                    found=found, expected=expected, remedy="was the file cut off? mend that line"
                )
    return problem
