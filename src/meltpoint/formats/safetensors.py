"""Safetensors: u64 length of the header, a JSON header {name: {dtype, shape, data_offsets}}, and the bytes of the
arrays.
"""

import json
import math
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.formats import named_arrays
from meltpoint.formats.bounded import allowance_of
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.models import Model

NAME = ".safetensors file"
OPTIONS = named_arrays.OPTIONS

_LONGEST_HEADER = 1 << 24
_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "<u1",
    "BOOL": "|b1",
}


def recognises(source: Source) -> bool:
    """Whether a length that fits is followed by a JSON object."""
    if len(source.head) < 10:
        return False
    (length,) = struct.unpack_from("<Q", source.head)
    return 2 <= length <= source.size - 8 and source.head[8:9] == b"{"


def read(source: Source, options: Options) -> Model:
    """The model whose parameters are the named arrays."""
    (length,) = struct.unpack_from("<Q", source.head)
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(source.data[8 : 8 + length])
    body = memoryview(source.data)[8 + length :]
    allowance = allowance_of(source.path, source.size)
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            array = _array(body, name, entry)
            allowance.take(array.nbytes)
            arrays[name] = array
    return named_arrays.model(source, arrays, options)


def _array(body: memoryview, name: str, entry: Any) -> NDArray[Any]:  # noqa: ANN401
    shape, (begin, end) = entry["shape"], entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
        raise ValueError(f"a wrong shape or place of {name!r}")
    code = entry["dtype"]
    width = 2 if code == "BF16" else np.dtype(_TYPES[code]).itemsize
    if end > len(body) or end - begin != width * math.prod(shape):
        raise ValueError(f"{name!r} has another size than its shape")
    if code == "BF16":  # the upper half of a float32
        halves = np.frombuffer(body[begin:end], "<u2").astype("<u4") << 16
        return halves.view("<f4").reshape(shape)
    return np.frombuffer(body[begin:end], _TYPES[code]).reshape(shape)
