"""Safetensors: u64 length of the header, a JSON header {name: {dtype, shape, data_offsets}}, and the bytes of the
arrays.
"""

import math
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.formats import named_arrays
from meltpoint.formats.bounded import described
from meltpoint.formats.documents import read_json
from meltpoint.formats.format import Format
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.models import Model

_LONGEST_HEADER = 1 << 24
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "|b1"}
_TYPES |= {f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)}


def _recognises(source: Source) -> bool:
    length = int.from_bytes(source.head[:8], "little")
    return source.head[8:9] == b"{" and 2 <= length <= source.size - 8


def _model(source: Source, options: Options) -> Model:
    (length,) = struct.unpack_from("<Q", source.head)
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = read_json(source.data[8 : 8 + length])
    body = memoryview(source.data)[8 + length :]
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            arrays[name] = _array(body, name, entry)
            source.allowance.take(arrays[name].nbytes)
    return named_arrays.model(source, arrays, options)


def _array(body: memoryview, name: str, entry: Any) -> NDArray[Any]:  # noqa: ANN401
    shape, (begin, end) = entry["shape"], entry["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
        raise ValueError(f"a wrong shape or place of {described(name)}")
    dtype = np.dtype(_TYPES[entry["dtype"]])
    if end > len(body) or end - begin != dtype.itemsize * math.prod(shape):
        raise ValueError(f"{described(name)} has another size than its shape")
    stored = np.frombuffer(body[begin:end], dtype)
    if entry["dtype"] == "BF16":  # the upper half of a float32
        stored = (stored.astype("<u4") << 16).view("<f4")
    return stored.reshape(shape)


FORMAT = Format("safetensors file", (".safetensors",), _recognises, named_arrays.OPTIONS, _model)
