"""UAI: factors over discrete variables, `MARKOV`, `BAYES` and `SPARSEMARKOV`, as text; and evidence, `.evid`.

The tables hold f, not log f; the last variable of a scope runs fastest. BAYES has the same layout, its tables are
conditional probabilities, and their product is the model. Lines that begin with `c` are comments. A sparse table is a
default value, a number of entries, and an index for each variable of the scope and a value for each entry.

Evidence says which variables were observed, and in which state. Two styles are in use: 2014's `t i_1 x_1 … i_t x_t`,
and 2010's, which has the number of samples in front. The number of tokens tells them apart: it is odd in the first,
even in the second with one sample.
"""

import math
import os
import re
from pathlib import Path

import numpy as np

from meltpoint.errors import InputError
from meltpoint.formats import build
from meltpoint.formats.documents import numbers
from meltpoint.formats.format import Format, Options
from meltpoint.formats.source import Source, opened, reading, size_of
from meltpoint.layers.unit import Floats
from meltpoint.models import FactorGraph, Model
from meltpoint.statistics.elementary import log

_KINDS = (b"MARKOV", b"BAYES", b"SPARSEMARKOV")
_COMMENT = re.compile(rb"^[ \t]*(c([ \t].*)?|#.*)$", re.MULTILINE)
_MOST_AXES = 64  # of a NumPy array
_MOST_FACTORS = 1_000_000
_LARGEST_EVIDENCE = 1 << 26  # bytes, and numbers


def _kind(text: bytes) -> bytes:
    return (text[:100].split(maxsplit=1) or [b""])[0]


def _recognises(source: Source) -> bool:
    """Whether the first word, after comments, is one of UAI's."""
    return source.is_text and _kind(_COMMENT.sub(b"", source.first_lines).lstrip()) in _KINDS


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
        length = stream.whole("the length of a scope", at_most=_MOST_AXES)
        scopes.append(scope := tuple(stream.whole("a variable") for _ in range(length)))
        if len(set(scope)) < len(scope) or any(variable >= n for variable in scope):
            raise ValueError(f"a factor over the variables {scope[:8]}")
    factors: list[tuple[tuple[int, ...], Floats]] = []
    read = _sparse if kind == b"SPARSEMARKOV" else _dense
    for scope in scopes:
        table = read(source, stream, tuple(cardinalities[variable] for variable in scope))
        if not (table >= 0).all() or not np.isfinite(table).all():
            raise InputError(
                found=f"a negative, infinite or undefined value in the factor over {scope[:8]} of {source.name}",
                expected="tables of f, not of log f",
                remedy="exponentiate logarithms first",
            )
        with np.errstate(divide="ignore"):
            factors.append((scope, log(table)))
    if stream.left:
        raise ValueError(f"{stream.left} numbers after the last table")
    with build.checked(source, n):
        return FactorGraph(cardinalities, factors)


class _Numbers:
    """Numbers to be taken one after the other."""

    def __init__(self, values: Floats) -> None:
        self._values, self._position = values, 0

    @property
    def left(self) -> int:
        return self._values.size - self._position

    def take(self, count: int) -> Floats:
        if count > self.left:
            raise ValueError("it ends too early")
        self._position += count
        return self._values[self._position - count : self._position]

    def whole(self, what: str, at_least: int = 0, at_most: int = 2**31 - 1) -> int:
        value = self.take(1)[0]
        if not (value == math.floor(value) and at_least <= value <= at_most):
            raise ValueError(f"{value:g} in place of {what}")
        return int(value)


def _dense(source: Source, stream: _Numbers, shape: tuple[int, ...]) -> Floats:
    count, expected = stream.whole("the size of a table"), math.prod(shape)
    if count != expected:
        raise ValueError(f"a table of {count} values where the cardinalities {shape} make {expected}")
    values = stream.take(count)
    source.take(values.nbytes)
    return values.reshape(shape)


def _sparse(source: Source, stream: _Numbers, shape: tuple[int, ...]) -> Floats:
    default = stream.take(1)[0]
    entries = stream.whole("the number of entries")
    listed = stream.take(entries * (len(shape) + 1)).reshape(entries, len(shape) + 1)
    source.take(8 * math.prod(shape))
    table = np.full(shape, default)
    indices = listed[:, :-1].astype(np.int64)
    if (indices != listed[:, :-1]).any() or (indices < 0).any() or (indices >= np.array(shape)).any():
        raise ValueError("an entry outside its table")
    table[tuple(indices.T)] = listed[:, -1]
    return table


def read_evidence(path: str | os.PathLike[str]) -> dict[int, int]:
    """State of every observed variable, by its number from 0, in a `.evid` file of either style.

    Parameters
    ----------
    path
        The evidence file. An empty one, or one that says 0, observes nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "model.uai.evid"
    ...     _ = file.write_text("2  0 1  7 0")
    ...     read_evidence(file)
    {0: 1, 7: 0}
    """
    file = Path(path)
    with reading(file, "evidence file"), opened(file, may_be_empty=True) as stream:
        if size_of(stream) > _LARGEST_EVIDENCE:
            raise ValueError(f"more than {_LARGEST_EVIDENCE:,} bytes")
        values = numbers(stream.read())
    wrong = values[(values < 0) | (values != np.floor(values)) | (values >= _LARGEST_EVIDENCE)]
    if wrong.size:
        expected = "whole numbers from 0: a count, then variables and their states"
        raise _no_evidence(file, f"'{wrong[0]:g}'", expected)
    found = values.astype(np.int64).tolist()
    if len(found) % 2 == 0 and found:
        samples, *found = found
        if samples != 1 and (samples, found) != (0, [0]):
            raise _no_evidence(file, f"{samples} samples of evidence", "one sample: a file for each")
    count, *pairs = found or [0]
    if len(pairs) != 2 * count:
        expected = f"{2 * count}: a variable and its state for each"
        raise _no_evidence(file, f"{len(pairs)} numbers after a count of {count}", expected)
    observed: dict[int, int] = {}
    for variable, state in zip(pairs[::2], pairs[1::2], strict=True):
        if (other := observed.setdefault(variable, state)) != state:
            states = f"states {other} and {state} of variable {variable}"
            raise _no_evidence(file, states, "one state for each variable")
    return observed


def _no_evidence(file: Path, found: str, expected: str) -> InputError:
    remedy = "check that this is an evidence file (.evid), and whole"
    return InputError(found=f"{found} in {file}", expected=expected, remedy=remedy)


FORMAT = Format("UAI file", (".uai",), _recognises, model=_model)
