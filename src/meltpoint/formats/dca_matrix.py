"""DCATools' matrix: a text table with a row J(ia, jb) for every site and state, the fields h(jb) as its last row."""

import math
from itertools import combinations

import numpy as np

from meltpoint.formats import build
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options, ask
from meltpoint.formats.source import Source
from meltpoint.formats.tokens import numbers
from meltpoint.models import Model

_MOST_COLUMNS = 100_000  # sites times states
_FIRST = set(b"0123456789.+-eE \t\r\n")


def _recognises(source: Source) -> bool:
    """Whether it is a table of numbers with one row more than columns."""
    if not source.is_text or not set(source.head) <= _FIRST:
        return False
    lines = source.data.split(b"\n", 2)[:2]
    columns = len(lines[0].split(None, _MOST_COLUMNS))
    # The first line of an alignment in numbers, sequences, columns and states, may chance upon the right number.
    same = 1 < columns <= _MOST_COLUMNS and len(lines[-1].split(None, columns)) == columns
    return same and source.data.rstrip().count(b"\n") == columns


def _model(source: Source, options: Options) -> Model:
    values = numbers(source.numbers)
    n = math.isqrt(values.size)
    if values.size != n * (n + 1):
        raise ValueError(f"{values.size} numbers, which are no matrix with one row more than columns")
    q = options.states
    if q is None or q < 2 or n % q:
        raise ask(
            "states",
            f"{source.name}, a matrix of {n + 1} x {n}" + (f" with states={q}" if q is not None else ""),
            "the number q of states of a site",
            f"give a divisor of {n}: 21 for proteins with a gap",
        )
    length = n // q
    matrix, fields = values[:-n].reshape(length, q, length, q), values[-n:].reshape(length, q)
    if not np.allclose(matrix, matrix.transpose(2, 3, 0, 1), rtol=0, atol=1e-4):
        raise ValueError("couplings that are not symmetric")
    source.allowance.take(matrix.nbytes)
    pairs = {(i, j): matrix[i, :, j].copy() for i, j in combinations(range(length), 2)}
    return build.potts(source, pairs, fields, options)


FORMAT = Format(
    "matrix of couplings with the fields as its last row", (".txt",), _recognises, ("states", "gauge"), _model
)
