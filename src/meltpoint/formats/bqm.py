"""Binary quadratic models of dimod, `.bqm` in versions 1 and 2: E = h·s + Σ J s s + offset, p ~ exp(-E /
temperature).

`DIMODBQM`, bytes major and minor, u32 length of the header, a JSON header; then the offset, for each variable the
start of its neighbourhood and its linear bias, for each neighbourhood the neighbours and their biases, and perhaps
labels. Units are in the order of the file.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.formats import build
from meltpoint.formats.bounded import described
from meltpoint.formats.documents import read_json
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options, inverse_temperature
from meltpoint.formats.source import Source
from meltpoint.models import Model

UNITS = {"SPIN": "spin", "BINARY": "bernoulli"}
"""Our units by dimod's vartype."""

_MAGIC = b"DIMODBQM"
_TYPES = {"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}


def _model(source: Source, options: Options) -> Model:
    beta = inverse_temperature(options, source.name)
    data = memoryview(source.data)
    major, _, length = struct.unpack_from("<BBI", data, len(_MAGIC))
    if major not in (1, 2):
        raise ValueError(f"version {major} of the format")
    begin = len(_MAGIC) + 6 + length
    if begin > len(data):
        raise ValueError(f"a header of {length} bytes")
    header = read_json(bytes(data[len(_MAGIC) + 6 : begin]))
    (n, m), units = _shape(header), UNITS[header["vartype"]]
    bias, index, start = (_type(header, name) for name in ("dtype", "itype", "ntype"))
    offset, begin = _take(data, begin, bias, 1)
    linear, begin = _take(data, begin, np.dtype([("start", start), ("bias", bias)]), n)
    quadratic, begin = _take(data, begin, np.dtype([("neighbour", index), ("bias", bias)]), 2 * m)
    degrees = np.diff(linear["start"].astype(np.int64), append=2 * m)
    if n and (linear["start"][0] != 0 or (degrees < 0).any()):
        raise ValueError("neighbourhoods out of order")
    variable = np.repeat(np.arange(n), degrees)
    neighbour = quadratic["neighbour"].astype(np.int64)
    # Every pair is there twice.
    once = neighbour < variable
    return build.ising(
        source,
        n,
        (neighbour[once], variable[once], -beta * quadratic["bias"][once].astype(np.float64)),
        -beta * linear["bias"].astype(np.float64),
        units,
        -beta * float(offset[0]),
    )


def _shape(header: Any) -> tuple[int, int]:  # noqa: ANN401
    n, m = header["shape"]
    if type(n) is not int or type(m) is not int or n < 1 or m < 0:
        raise ValueError(f"a shape {described(n)}, {described(m)}")
    return n, m


def _type(header: Any, name: str) -> np.dtype[Any]:  # noqa: ANN401
    if header[name] not in _TYPES:
        raise ValueError(f"numbers of type {described(header[name])}")
    return np.dtype(header[name]).newbyteorder("<")


def _take(data: memoryview, begin: int, dtype: np.dtype[Any], count: int) -> tuple[NDArray[Any], int]:
    end = begin + count * dtype.itemsize
    if end > len(data):
        raise ValueError("it ends too early")
    return np.frombuffer(data[begin:end], dtype), end


FORMAT = Format(
    "dimod .bqm file",
    (".bqm",),
    lambda source: source.head.startswith(_MAGIC),
    ("temperature", "beta"),
    _model,
)
