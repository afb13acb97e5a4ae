"""UAI: factors over discrete variables, `MARKOV`, `BAYES` and `SPARSEMARKOV`, as text.

The tables hold f, not log f; the last variable of a scope runs fastest. BAYES has the same layout, its tables are
conditional probabilities, and their product is the model. Lines that begin with `c` are comments. A sparse table is a
default value, a number of entries, and an index for each variable of the scope and a value for each entry.
"""

import math
import re

import numpy as np

from meltpoint.errors import InputError
from meltpoint.formats import build
from meltpoint.formats.bounded import Allowance
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.formats.tokens import numbers
from meltpoint.layers.unit import Floats
from meltpoint.models import Model
from meltpoint.statistics.elementary import log

_KINDS = (b"MARKOV", b"BAYES", b"SPARSEMARKOV")
_COMMENT = re.compile(rb"^[ \t]*(c([ \t].*)?|#.*)$", re.MULTILINE)
_MOST_AXES = 64  # of a NumPy array
_MOST_FACTORS = 1_000_000


def _model(source: Source, options: Options) -> Model:
    text = _COMMENT.sub(b"", source.numbers).lstrip()
    kind = _kind(text)
    stream = _Numbers(numbers(text[len(kind) :]))
    n = stream.whole("the variables")
    build.check_size(source, n)
    cardinalities = [stream.whole("a cardinality", at_least=1) for _ in range(n)]
    n_factors = stream.whole("the factors")
    if n_factors > _MOST_FACTORS:
        raise ValueError(f"{n_factors:,} factors")
    scopes = []
    for _ in range(n_factors):
        scope = tuple(
            stream.whole("a variable")
            for _ in range(stream.whole("the length of a scope", at_most=_MOST_AXES))
        )
        if len(set(scope)) < len(scope) or any(variable >= n for variable in scope):
            raise ValueError(f"a factor over the variables {scope[:8]}")
        scopes.append(scope)
    factors: list[tuple[tuple[int, ...], Floats]] = []
    for scope in scopes:
        shape = tuple(cardinalities[variable] for variable in scope)
        table = (_sparse if kind == b"SPARSEMARKOV" else _dense)(stream, shape, source.allowance)
        factors.append((scope, _logs(table, scope, source)))
    stream.check_end()
    return build.factor_graph(source, cardinalities, factors)


class _Numbers:
    def __init__(self, values: Floats) -> None:
        self._values, self._position = values, 0

    def take(self, count: int) -> Floats:
        taken = self._values[self._position : self._position + count]
        if taken.size < count:
            raise ValueError("it ends too early")
        self._position += count
        return taken

    def whole(self, what: str, at_least: int = 0, at_most: int = 2**31 - 1) -> int:
        value = self.take(1)[0]
        if not (value == math.floor(value) and at_least <= value <= at_most):
            raise ValueError(f"{value:g} in place of {what}")
        return int(value)

    def check_end(self) -> None:
        left = self._values.size - self._position
        if left:
            raise ValueError(f"{left} numbers after the last table")


def _dense(stream: _Numbers, shape: tuple[int, ...], allowance: Allowance) -> Floats:
    count, expected = stream.whole("the size of a table"), math.prod(shape)
    if count != expected:
        raise ValueError(f"a table of {count} values where the cardinalities {shape} make {expected}")
    values = stream.take(count)
    allowance.take(values.nbytes)
    return values.reshape(shape)


def _sparse(stream: _Numbers, shape: tuple[int, ...], allowance: Allowance) -> Floats:
    default = stream.take(1)[0]
    entries = stream.whole("the number of entries")
    listed = stream.take(entries * (len(shape) + 1)).reshape(entries, len(shape) + 1)
    allowance.take(8 * math.prod(shape))
    table = np.full(shape, default)
    indices = listed[:, :-1].astype(np.int64)
    if (indices != listed[:, :-1]).any() or (indices < 0).any() or (indices >= np.array(shape)).any():
        raise ValueError("an entry outside its table")
    table[tuple(indices.T)] = listed[:, -1]
    return table


def _logs(table: Floats, scope: tuple[int, ...], source: Source) -> Floats:
    if not (table >= 0).all() or not np.isfinite(table).all():
        raise InputError(
            found=f"a negative, infinite or undefined value in the factor over {scope[:8]} of {source.name}",
            expected="tables of f, not of log f",
            remedy="exponentiate logarithms first",
        )
    with np.errstate(divide="ignore"):
        return log(table)


def _kind(text: bytes) -> bytes:
    return (text[:100].split(maxsplit=1) or [b""])[0]


def _recognises(source: Source) -> bool:
    """Whether the first word, after comments, is one of UAI's."""
    return source.is_text and _kind(_COMMENT.sub(b"", source.first_lines).lstrip()) in _KINDS


FORMAT = Format("UAI file", (".uai",), _recognises, model=_model)
