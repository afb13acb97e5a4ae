"""Binary quadratic models of dimod: E = h·s + Σ J s s + offset, p ~ exp(-E / temperature).

`.bqm`, versions 1 and 2: `DIMODBQM`, bytes major and minor, u32 length of the header, a JSON header; then the offset,
for each variable the start of its neighbourhood and its linear bias, for each neighbourhood the neighbours and their
biases, and perhaps labels. Units are in the order of the file.

Text: JSON (bqm_schema 3.0.0), COO lines `u v bias`, and qbsolv's `.qubo`. In COO u = v is a linear bias; the offset is
lost. Whether units are spins is in a line `# vartype=SPIN`, or must be given; a `.qubo` file (a line `p qubo …`) has
units 0 and 1. The units are those that occur, in the order of their numbers.
"""

import re
import struct
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, described, printable
from meltpoint.formats import build
from meltpoint.formats.documents import read_json, rows
from meltpoint.formats.format import Format, Options
from meltpoint.formats.source import HEAD, Source, source_of_object
from meltpoint.layers.unit import Floats
from meltpoint.models import FactorGraph, Model

UNITS = {"SPIN": "spin", "BINARY": "bernoulli"}
"""Our units by dimod's vartype."""

_MAGIC = b"DIMODBQM"
_TYPES = {"float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_REMARK = re.compile(rb"^[ \t]*(#|c\b|p[ \t]|==>).*$", re.MULTILINE)
_TRIPLET = re.compile(rb"[ \t]*\d+[ \t]+\d+[ \t]+[-+.\d][-+.\deE]*[ \t\r]*")
_VARTYPE = re.compile(rb"^[ \t]*#.*?vartype[:=][ \t]*(\w+)", re.MULTILINE)
_PROBLEM = re.compile(rb"^[ \t]*p[ \t]+qubo[ \t]+\d+[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)", re.MULTILINE)
_LARGEST_DEGREE = 16  # of a polynomial's terms, each of which becomes a table
_LARGEST_LABEL = 2**53  # numbers are read as float64

Triplets = tuple[NDArray[np.int64], NDArray[np.int64], Floats]
"""Couplings: unit, unit, bias."""


def _model(
    source: Source, beta: float, linear: Floats, quadratic: Triplets, units: str, offset: float
) -> Model:
    i, j, values = quadratic
    pairs = (i, j, -beta * values)
    return build.ising(source, len(linear), pairs, -beta * linear, units, -beta * offset)


def _binary(source: Source, options: Options) -> Model:
    beta, data = options.inverse_temperature(source.name), memoryview(source.data)
    major, _, length = struct.unpack_from("<BBI", data, len(_MAGIC))
    if major not in (1, 2):
        raise ValueError(f"version {major} of the format")
    begin = len(_MAGIC) + 6 + length
    if begin > len(data):
        raise ValueError(f"a header of {length} bytes")
    header = read_json(bytes(data[len(_MAGIC) + 6 : begin]))
    n, m = header["shape"]
    if type(n) is not int or type(m) is not int or n < 1 or m < 0:
        raise ValueError(f"a shape {described(n)}, {described(m)}")
    bias, index, start = (_type(header, name) for name in ("dtype", "itype", "ntype"))
    offset, begin = _take(data, begin, bias, 1)
    linear, begin = _take(data, begin, np.dtype([("start", start), ("bias", bias)]), n)
    quadratic, _ = _take(data, begin, np.dtype([("neighbour", index), ("bias", bias)]), 2 * m)
    degrees = np.diff(linear["start"].astype(np.int64), append=2 * m)
    if n and (linear["start"][0] != 0 or (degrees < 0).any()):
        raise ValueError("neighbourhoods out of order")
    variable = np.repeat(np.arange(n), degrees)
    neighbour = quadratic["neighbour"].astype(np.int64)
    once = neighbour < variable  # every pair is there twice
    pairs = neighbour[once], variable[once], quadratic["bias"][once].astype(np.float64)
    fields, units = linear["bias"].astype(np.float64), UNITS[header["vartype"]]
    return _model(source, beta, fields, pairs, units, float(offset[0]))


def _type(header: Any, name: str) -> np.dtype[Any]:  # noqa: ANN401
    if header[name] not in _TYPES:
        raise ValueError(f"numbers of type {described(header[name])}")
    return np.dtype(header[name]).newbyteorder("<")


def _take(data: memoryview, begin: int, dtype: np.dtype[Any], count: int) -> tuple[NDArray[Any], int]:
    end = begin + count * dtype.itemsize
    if end > len(data):
        raise ValueError("it ends too early")
    return np.frombuffer(data[begin:end], dtype), end


def _is_text(source: Source) -> bool:
    """Whether it is JSON with the name of the schema, or lines `u v bias`."""
    if not source.is_text:
        return False
    if source.first_lines.startswith(b"{"):
        return b"bqm_schema" in source.data and b"quadratic_head" in source.data
    lines = _REMARK.sub(b"", source.first_lines).split(b"\n")
    if len(lines) > 1 and len(source.head) == HEAD:
        lines.pop()  # which may be cut off
    whole = [line for line in lines if line.strip()]
    return bool(whole) and all(_TRIPLET.fullmatch(line) for line in whole)


def _text(source: Source, options: Options) -> Model:
    beta = options.inverse_temperature(source.name)
    read = _from_json if source.first_lines.startswith(b"{") else _from_coo
    return _model(source, beta, *read(source, options))


def _from_json(source: Source, options: Options) -> tuple[Floats, Triplets, str, float]:
    found = read_json(source.numbers)
    if found.get("use_bytes"):
        raise ValueError("numbers as bytes")
    linear, i, j, values = (
        _listed(found, name)
        for name in ("linear_biases", "quadratic_head", "quadratic_tail", "quadratic_biases")
    )
    if not i.size == j.size == values.size:
        raise ValueError("heads, tails and biases of different numbers")
    units = _units(source, options, UNITS[found["variable_type"]])
    return linear, (_indices(i), _indices(j), values), units, float(found["offset"])


def _listed(found: Any, name: str) -> Floats:  # noqa: ANN401
    listed = found[name]
    if isinstance(listed, list) and all(type(item) in (int, float) for item in listed):
        listed = np.array(listed, np.float64)
    if not isinstance(listed, np.ndarray):
        raise ValueError(f"{name} is no list of numbers")
    return listed


def _indices(labels: Floats) -> NDArray[np.int64]:
    if not ((labels >= 0) & (labels < _LARGEST_LABEL) & (labels == np.floor(labels))).all():
        raise ValueError("variables that are no whole numbers from 0")
    return labels.astype(np.int64)


def _from_coo(source: Source, options: Options) -> tuple[Floats, Triplets, str, float]:
    data = source.numbers
    header, problem = _VARTYPE.search(data), _PROBLEM.search(data)
    said = UNITS[header[1].decode("latin-1")] if header else "bernoulli" if problem else None
    units = _units(source, options, said)
    found = rows(_REMARK.sub(b"", data), 3)
    present, flat = np.unique(_indices(found[:, :2]), return_inverse=True)
    u, v = flat.reshape(-1, 2).T
    is_linear = u == v
    linear = np.zeros(present.size)
    np.add.at(linear, u[is_linear], found[is_linear, 2])
    stored = int(is_linear.sum()), int((~is_linear).sum())
    if problem and (promised := (int(problem[2]), int(problem[3]))) != stored:
        warnings.warn(
            printable(
                f"{source.name} promises {promised[0]:,} linear biases and {promised[1]:,} couplings, there are "
                f"{stored[0]:,} and {stored[1]:,}: was it cut off?"
            ),
            UserWarning,
            stacklevel=2,
        )
    return linear, (u[~is_linear], v[~is_linear], found[~is_linear, 2]), units, 0.0


def _units(source: Source, options: Options, said: str | None) -> str:
    """The units that the file or the caller says; they must not contradict each other."""
    if said is None:
        return options.require("units", f"{source.name}, COO text without a line '# vartype='")
    if options.units not in (None, said):
        raise InputError(
            found=f"units={options.units!r} for {source.name}, whose header says {said}",
            expected=f"units={said!r}, or none",
            remedy="leave units out",
        )
    return said


def from_object(model: Any, options: Options) -> Model:  # noqa: ANN401
    """The Ising model of dimod's own object; sites in the order of its variables."""
    beta = options.inverse_temperature(f"a {type(model).__name__}")
    vartype = getattr(model.vartype, "name", str(model.vartype))
    if vartype not in UNITS:
        raise InputError(
            found=f"a model of vartype {vartype}",
            expected="SPIN or BINARY",
            remedy="use a BinaryQuadraticModel",
        )
    site = {variable: k for k, variable in enumerate(getattr(model, "variables", model.linear))}
    linear = np.array([float(model.linear[variable]) for variable in site])
    pairs = np.array([(site[u], site[v]) for u, v in model.quadratic], np.int64).reshape(-1, 2)
    values = np.array([float(bias) for bias in model.quadratic.values()])
    quadratic = (pairs[:, 0], pairs[:, 1], values)
    return _model(source_of_object(), beta, linear, quadratic, UNITS[vartype], float(model.offset))


def is_qubo(x: Any) -> bool:  # noqa: ANN401
    """Whether it is a dict of biases by pairs of variables."""
    return isinstance(x, dict) and bool(x) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in x)


def from_qubo(biases: Any, options: Options) -> Model:  # noqa: ANN401
    """The Ising model of a dict {(i, j): bias} of units 0 and 1; (i, i) is linear, (i, j) and (j, i) are added up.

    Numbered variables are in the order of their numbers, others as they occur.
    """
    beta, site = options.inverse_temperature("a QUBO dict"), _sites(v for pair in biases for v in pair)
    linear, pairs, values = np.zeros(len(site)), [], []
    for (u, v), bias in biases.items():
        if u == v:
            linear[site[u]] += float(bias)
        else:
            pairs.append((site[u], site[v]))
            values.append(float(bias))
    i, j = np.array(pairs, np.int64).reshape(-1, 2).T
    return _model(source_of_object(), beta, linear, (i, j, np.array(values)), "bernoulli", 0.0)


def from_polynomial(polynomial: Any, options: Options) -> Model:  # noqa: ANN401
    """The factor graph of dimod's BinaryPolynomial: E = sum of bias times the product of variables that are 0 or 1."""
    beta, vartype = options.inverse_temperature(f"a {type(polynomial).__name__}"), polynomial.vartype
    if getattr(vartype, "name", str(vartype)) != "BINARY" or polynomial.degree > _LARGEST_DEGREE:
        raise InputError(
            found=f"a {type(polynomial).__name__} of degree {polynomial.degree} and vartype {vartype}",
            expected=f"one of BINARY variables and of degree {_LARGEST_DEGREE} at most",
            remedy="convert spins with polynomial.to_binary(); states are then 0 and 1",
        )
    site = _sites(v for term in polynomial for v in term)
    factors = []
    for term, bias in polynomial.items():
        table = np.zeros((2,) * len(term))
        table[(1,) * len(term)] = -beta * float(bias)
        factors.append((tuple(site[v] for v in term), table))
    return FactorGraph([2] * len(site), factors)


def _sites(variables: Iterable[Any]) -> dict[Any, int]:
    found = dict.fromkeys(variables)
    ordered = sorted(found) if all(isinstance(v, int | np.integer) for v in found) else list(found)
    return {variable: k for k, variable in enumerate(ordered)}


_ENERGY = ("temperature", "beta")
BINARY = Format("dimod .bqm file", (".bqm",), lambda source: source.head.startswith(_MAGIC), _ENERGY, _binary)
TEXT = Format("dimod JSON or COO text", (".json", ".coo", ".qubo"), _is_text, (*_ENERGY, "units"), _text)
