"""Parquet files, by pyarrow if it is installed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.extras import require
from meltpoint.formats.format import Format, Table, without_name
from meltpoint.formats.source import Source

_BYTES = 8  # of a number in the table


def _table(source: Source) -> Table:
    pq = require("pyarrow.parquet", f"reading {source.name}; .csv needs none")
    kinds = require("pyarrow.types", "the same")
    stored = pq.ParquetFile(source.open())
    schema = stored.schema_arrow
    # Runs of one value take a few bytes in the file, however long they are.
    source.allowance.take(stored.metadata.num_rows * len(schema) * _BYTES)
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


def _array(source: Source, name: str | None) -> NDArray[Any]:
    without_name(source, name)
    return _table(source).values


FORMAT = Format(
    "parquet file",
    (".parquet",),
    lambda source: source.head.startswith(b"PAR1"),
    array=_array,
    examples=lambda source, _: _table(source),
)
