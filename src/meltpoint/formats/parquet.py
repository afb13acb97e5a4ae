"""Parquet files, by pyarrow if it is installed."""

from pathlib import Path

import numpy as np

from meltpoint.errors import InputError
from meltpoint.extras import require
from meltpoint.formats.bounded import allowance_of, open_regular, reading, size_of
from meltpoint.formats.formats import Format
from meltpoint.formats.text import Table

_BYTES = 8  # of a number in the table


def read_parquet(path: Path) -> Table:
    """The columns of numbers of a parquet file; others are named."""
    pq = require("pyarrow.parquet", f"reading {path}; .csv needs none")
    kinds = require("pyarrow.types", "the same")
    with reading(path, Format.PARQUET.value), open_regular(path) as file:
        stored = pq.ParquetFile(file)
        shape = stored.metadata.num_rows, len(stored.schema_arrow)
        # Runs of one value take a few bytes in the file, however long they are.
        allowance_of(path, size_of(file)).take(shape[0] * shape[1] * _BYTES)
        schema = stored.schema_arrow
        numbers = [
            field.name
            for field in schema
            if kinds.is_integer(field.type) or kinds.is_floating(field.type) or kinds.is_boolean(field.type)
        ]
        words = tuple(field.name for field in schema if field.name not in numbers)
        if not numbers:
            raise InputError(
                found=f"{path}, without a column of numbers",
                expected="at least one",
                remedy="convert them first",
            )
        table = stored.read(columns=numbers)
        columns = [np.asarray(table.column(name).to_numpy(), np.float64) for name in numbers]
        return Table(np.stack(columns, axis=1), tuple(numbers), words)
