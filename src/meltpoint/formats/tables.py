"""Data as tables: text, one example per line, separated by commas, semicolons or blanks; parquet; MNIST's idx."""

import codecs
import io
import math
import struct
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, described
from meltpoint.extras import require
from meltpoint.formats.format import Format, Options, Table
from meltpoint.formats.source import Source, read_promised

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""The third byte of an idx file, and the numbers it announces."""

_MOST_COLUMNS = 1_000_000
_FEWEST = 3  # numbers in a row that number the columns: fewer could be bits
_BYTES = 8  # of a number in a table


def _is_idx(source: Source) -> bool:
    head = source.head
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in IDX_TYPES and head[3] > 0


def _idx(source: Source, _options: Options, _name: str | None) -> NDArray[Any]:
    """A magic number, the lengths of the axes, the numbers; images are flattened to (example, pixel)."""
    stream = source.stream()
    magic = stream.read(4)
    shape = struct.unpack(f">{magic[3]}I", stream.read(4 * magic[3]))
    if len(shape) > 2:
        shape = (shape[0], math.prod(shape[1:]))
    return read_promised(source, stream, np.dtype(IDX_TYPES[magic[2]]), shape, source.most)


def _parquet(source: Source, _options: Options, _name: str | None) -> Table:
    pq = require("pyarrow.parquet", f"reading {source.name}; .csv needs none")
    kinds = require("pyarrow.types", "the same")
    stored = pq.ParquetFile(source.open())
    schema = stored.schema_arrow
    # Runs of one value take a few bytes in the file, however long they are.
    source.take(stored.metadata.num_rows * len(schema) * _BYTES)
    numbers = [
        field.name
        for field in schema
        if kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_boolean(field.type)
    ]
    if not numbers:
        raise InputError(
            found=f"{source.name}, without a column of numbers",
            expected="at least one",
            remedy="convert them first",
        )
    table = stored.read(columns=numbers)
    columns = [np.asarray(table.column(name).to_numpy(), np.float64) for name in numbers]
    words = tuple(field.name for field in schema if field.name not in numbers)
    return Table(np.stack(columns, axis=1), tuple(numbers), words)


def _is_text(source: Source) -> bool:
    try:
        # Not the final part: the head may end inside a character.
        codecs.getincrementaldecoder("utf-8")().decode(source.head, final=False)
    except UnicodeDecodeError:
        return False
    return source.is_text and source.path.suffix.lower() not in (".pkl", ".pickle")


def _text(source: Source, _options: Options, _name: str | None) -> Table:
    """Numbers (line, column); a first line of words names the columns. Columns of words are left out, and named."""
    source.take(4 * source.size)  # a digit and a separator become eight bytes
    with io.TextIOWrapper(source.open(), encoding="utf-8-sig") as file:
        lines = _content(file)
        (header, line), (_, second) = next(lines, (0, "")), next(lines, (0, ""))
        cells, below = _cells(line, _separator(line)), _cells(second, _separator(second))
        names: tuple[str, ...] = ()
        if _is_header(source, cells, below):
            # R leaves out the name of the index.
            names = ("", *cells) if len(cells) + 1 == len(below) else tuple(cells)
        elif not _announces(cells, below):
            header, second, below = 0, line, cells
        if not second:
            raise InputError(
                found=f"{source.name}, a text file without a line of numbers",
                expected="one example per line",
                remedy="check how the file was made",
            )
        kept = [k for k, cell in enumerate(below) if _is_number(cell)]
        columns = kept if 0 < len(kept) < len(below) else None
        separator = _separator(second)
        file.seek(0)
        try:
            values = np.loadtxt(
                file, delimiter=separator, skiprows=header, ndmin=2, quotechar='"', usecols=columns
            )
        except ValueError as problem:
            raise _first_bad_line(file, source, header, separator, columns) or problem from problem
    if columns is None:
        return Table(values, names if len(names) == values.shape[1] else None)
    all_names = names if len(names) == len(below) else tuple(f"column {k}" for k in range(len(below)))
    words = tuple(name for k, name in enumerate(all_names) if k not in columns)
    return Table(values, tuple(names[k] for k in columns) if all_names == names else None, words)


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
    found = f"{_shown(words[0])} beside numbers in the first line of {source.name}"
    raise InputError(
        found=found,
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
    cells = line.split(separator, _MOST_COLUMNS)
    if len(cells) > _MOST_COLUMNS:
        raise ValueError(f"more than {_MOST_COLUMNS:,} columns")
    return [cell.strip().strip('"') for cell in cells]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _shown(cell: str) -> str:
    return described(cell) if cell else "an empty cell"


def _first_bad_line(
    file: TextIO, source: Source, header: int, separator: str | None, columns: list[int] | None
) -> InputError | None:
    """Where the table breaks, in the line numbers an editor shows."""
    width = 0
    file.seek(0)
    for number, line in _content(file):
        if number <= header:
            continue
        cells = _cells(line, separator)
        width = width or len(cells)
        where = f"in line {number} of {source.name}"
        numeric = cells if columns is None or len(cells) != width else [cells[k] for k in columns]
        bad = next((cell for cell in numeric if not _is_number(cell)), None)
        if bad is not None:
            return InputError(
                found=f"{_shown(bad)} {where}", expected="a number", remedy="drop, fill or convert it first"
            )
        if len(cells) != width:
            return InputError(
                found=f"{len(cells)} values {where}",
                expected=f"{width}, as in the lines before",
                remedy="was the file cut off? correct that line",
            )
    return None


IDX = Format("MNIST idx file", (".idx", "-ubyte"), _is_idx, data=_idx)
PARQUET = Format("parquet file", (".parquet",), lambda source: source.head.startswith(b"PAR1"), data=_parquet)
TEXT = Format("text table", (".csv", ".tsv", ".txt"), _is_text, data=_text)
