"""Binary quadratic models of dimod as text: JSON (bqm_schema 3.0.0), COO lines `u v bias`, and qbsolv's `.qubo`.

In COO u = v is a linear bias; the offset is lost. Whether units are spins is in a line `# vartype=SPIN`, or must be
given; a `.qubo` file (a line `p qubo …`) has units 0 and 1. The units are those that occur, in the order of their
numbers.
"""

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, printable
from meltpoint.formats import build
from meltpoint.formats.bqm import UNITS
from meltpoint.formats.documents import read_json
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options, ask, inverse_temperature
from meltpoint.formats.source import HEAD, Source
from meltpoint.formats.tokens import rows
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

_REMARK = re.compile(rb"^[ \t]*(#|c\b|p[ \t]|==>).*$", re.MULTILINE)
_TRIPLET = re.compile(rb"[ \t]*\d+[ \t]+\d+[ \t]+[-+.\d][-+.\deE]*[ \t\r]*")
_VARTYPE = re.compile(rb"^[ \t]*#.*?vartype[:=][ \t]*(\w+)", re.MULTILINE)
_PROBLEM = re.compile(rb"^[ \t]*p[ \t]+qubo[ \t]+\d+[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)", re.MULTILINE)
_LARGEST_LABEL = 2**53  # numbers are read as float64


def _recognises(source: Source) -> bool:
    """Whether it is JSON with the name of the schema, or lines `u v bias`."""
    if not source.is_text:
        return False
    if source.first_lines.startswith(b"{"):
        return b"bqm_schema" in source.data and b"quadratic_head" in source.data
    lines = _REMARK.sub(b"", source.head.removeprefix(b"\xef\xbb\xbf")).split(b"\n")
    if len(lines) > 1 and len(source.head) == HEAD:
        lines.pop()  # which may be cut off
    whole = [line for line in lines if line.strip()]
    return bool(whole) and all(_TRIPLET.fullmatch(line) for line in whole)


def _model(source: Source, options: Options) -> Model:
    beta = inverse_temperature(options, source.name)
    if source.first_lines.startswith(b"{"):
        linear, (i, j, values), units, offset = _from_json(source, options)
    else:
        linear, (i, j, values), units = _from_coo(source, options)
        offset = 0.0
    return build.ising(source, len(linear), (i, j, -beta * values), -beta * linear, units, -beta * offset)


Triplets = tuple[NDArray[np.int64], NDArray[np.int64], Floats]


def _from_json(source: Source, options: Options) -> tuple[Floats, Triplets, str, float]:
    found = read_json(source.numbers)
    if found.get("use_bytes"):
        raise ValueError("numbers as bytes")
    linear = _array(found, "linear_biases", np.float64)
    i, j = _array(found, "quadratic_head", np.int64), _array(found, "quadratic_tail", np.int64)
    values = _array(found, "quadratic_biases", np.float64)
    if not i.size == j.size == values.size:
        raise ValueError("heads, tails and biases of different numbers")
    units = _units(source, options, UNITS[found["variable_type"]])
    return linear, (i, j, values), units, float(found["offset"])


def _array(found: Any, name: str, dtype: Any) -> NDArray[Any]:  # noqa: ANN401
    listed = found[name]
    if isinstance(listed, list) and all(type(item) in (int, float) for item in listed):
        listed = np.array(listed, np.float64)
    if not isinstance(listed, np.ndarray):
        raise ValueError(f"{name} is no list of numbers")
    if (
        dtype is np.int64
        and not ((listed >= 0) & (listed < _LARGEST_LABEL) & (listed == np.floor(listed))).all()
    ):
        raise ValueError(f"{name} has numbers that are no indices")
    return listed.astype(dtype)


def _from_coo(source: Source, options: Options) -> tuple[Floats, Triplets, str]:
    data = source.numbers
    header, problem = _VARTYPE.search(data), _PROBLEM.search(data)
    said = UNITS[header[1].decode("latin-1")] if header else "bernoulli" if problem else None
    units = _units(source, options, said)
    found = rows(_REMARK.sub(b"", data), 3)
    labels = found[:, :2]
    if not ((labels >= 0) & (labels < _LARGEST_LABEL) & (labels == np.floor(labels))).all():
        raise ValueError("variables that are no whole numbers from 0")
    present, flat = np.unique(labels, return_inverse=True)
    u, v = flat.reshape(-1, 2).T
    is_linear = u == v
    linear = np.zeros(present.size)
    np.add.at(linear, u[is_linear], found[is_linear, 2])
    if problem:
        _compare(source, problem, int(is_linear.sum()), int((~is_linear).sum()))
    return linear, (u[~is_linear], v[~is_linear], found[~is_linear, 2]), units


def _units(source: Source, options: Options, said: str | None) -> str:
    """The units that the file or the caller says; they must not contradict each other."""
    units = said or options.units
    if units is None:
        raise ask(
            "units",
            f"{source.name}, COO text without a line '# vartype='",
            '"spin" or "bernoulli"',
            "spin for -1 and +1 (an Ising problem), bernoulli for 0 and 1 (a QUBO)",
        )
    if options.units not in (None, units):
        raise InputError(
            found=f"units={options.units!r} for {source.name}, whose header says {units}",
            expected=f"units={units!r}, or none",
            remedy="leave units out",
        )
    return units


def _compare(source: Source, problem: re.Match[bytes], linear: int, couplings: int) -> None:
    promised = int(problem[2]), int(problem[3])
    if promised != (linear, couplings):
        warnings.warn(
            printable(
                f"{source.name} promises {promised[0]:,} linear biases and {promised[1]:,} couplings, there are "
                f"{linear:,} and {couplings:,}: was it cut off?"
            ),
            UserWarning,
            stacklevel=2,
        )


FORMAT = Format(
    "dimod JSON or COO text",
    (".json", ".coo", ".qubo"),
    _recognises,
    ("temperature", "beta", "units"),
    _model,
)
