"""Tensors by name: PyTorch's state dicts (`.pt`, `.pth`, in the zip format and the one before 1.6) and safetensors.

Nothing is unpickled. A PyTorch file's pickle is read opcode by opcode: dictionaries, text, numbers and tensors, whose
numbers lie beside it. Anything that would call another function is refused. Safetensors is a u64 length of the header,
a JSON header {name: {dtype, shape, data_offsets}}, and the bytes of the arrays.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, described
from meltpoint.formats import named_arrays, npz
from meltpoint.formats.documents import read_json
from meltpoint.formats.format import Format, Options
from meltpoint.formats.opcodes import IGNORED, Global, Refused, read_opcodes
from meltpoint.formats.source import Source
from meltpoint.models import Model

_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_LONGEST_PICKLE = 1 << 22
_LONGEST_HEADER = 1 << 24
_MOST_ENTRIES = 10_000
_BFLOAT16 = "bf16"
_STORAGES = {
    **{"DoubleStorage": "f8", "FloatStorage": "f4", "HalfStorage": "f2", "BFloat16Storage": _BFLOAT16},
    **{"LongStorage": "i8", "IntStorage": "i4", "ShortStorage": "i2", "CharStorage": "i1"},
    **{"ByteStorage": "u1", "BoolStorage": "b1"},
}
_TYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": _BFLOAT16, "BOOL": "b1"}
_TYPES |= {f"{kind}{8 * size}": f"{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)}

_IGNORED = {
    *(f"numpy.{core}.multiarray.scalar" for core in ("core", "_core")),
    "numpy.dtype",
    "_codecs.encode",
}
"""What a NumPy number beside the tensors is made by: the last loss, for instance."""

_STATE = ("state_dict", "model_state_dict", "model", "rbm")
"""Keys under which checkpoints keep the state dict, beside the optimiser's."""


@dataclass(frozen=True)
class _Storage:
    """The numbers of one or more tensors: their type, and the key they are stored by."""

    dtype: str
    key: str


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _pickles(source: Source) -> list[str]:
    return [name for name in source.once(npz.members) if name.endswith("/data.pkl")]


def _torch_model(source: Source, options: Options) -> Model:
    try:
        arrays = _from_legacy(source) if source.head.startswith(_LEGACY) else _from_zip(source)
    except Refused as problem:
        raise InputError(
            found=f"{source.name}, a PyTorch file that holds {problem}: it could run any program when it is opened",
            expected="a state dict: names and tensors",
            remedy=f"if you trust it: model = torch.load({source.path.name!r}, weights_only=False); "
            "torch.save(model.state_dict(), 'state.pt')",
        ) from problem
    return named_arrays.model(source, arrays, options)


def _from_zip(source: Source) -> dict[str, NDArray[Any]]:
    members, pickles = source.once(npz.members), _pickles(source)
    if len(pickles) != 1:
        raise ValueError(f"{len(pickles)} files data.pkl")
    folder = pickles[0].removesuffix("data.pkl")
    order = "<"
    if f"{folder}byteorder" in members:
        order = {b"little": "<", b"big": ">"}[npz.content(source, f"{folder}byteorder", 10)]
    found, _ = read_opcodes(npz.content(source, pickles[0], _LONGEST_PICKLE), _persistent, _reduce)

    def numbers(storage: _Storage) -> bytes:
        name = f"{folder}data/{storage.key}"
        source.take(members[name].file_size)
        return npz.content(source, name, members[name].file_size)

    return _arrays(source, _flat(found), numbers, order)


def _from_legacy(source: Source) -> dict[str, NDArray[Any]]:
    """The older format: pickles of signature, version, system, state dict and keys, then the storages one by one."""
    data, begin, values = source.data, 0, []
    for _ in range(5):
        value, length = read_opcodes(data[begin:], _persistent, _reduce)
        values.append(value)
        begin += length
    _, _, system, found, keys = values
    order = ">" if isinstance(system, dict) and system.get("little_endian") is False else "<"
    tensors = _flat(found)
    storages = {tensor.storage.key: tensor.storage for tensor in tensors.values()}
    places: dict[str, bytes] = {}
    for key in keys if isinstance(keys, list) else []:
        # Only names are looked up: to hash another object could take unbounded time.
        if type(key) is not str or key not in storages:
            raise ValueError("a storage that no tensor uses")
        (count,) = struct.unpack_from(f"{order}q", data, begin)
        end = begin + 8 + count * _width(storages[key].dtype)
        if count < 0 or end > len(data):
            raise ValueError("it ends too early")
        places[key] = data[begin + 8 : end]
        begin = end
    return _arrays(source, tensors, lambda storage: places[storage.key], order)


def _persistent(value: object) -> _Storage:
    """The storage that a persistent id names: ("storage", type, key, device, count)."""
    if type(value) is not tuple or len(value) not in (5, 6) or described(value[0]) != "'storage'":
        raise Refused("a reference to something else than a storage")
    kind, key, count = value[1], value[2], value[4]
    if not isinstance(kind, Global) or kind.module != "torch" or kind.name not in _STORAGES:
        raise Refused(f"a storage of type {kind if isinstance(kind, Global) else described(kind)}")
    if not isinstance(key, str) or type(count) is not int or (len(value) == 6 and value[5] is not None):
        raise ValueError("a storage without a key or a size")
    return _Storage(_STORAGES[kind.name], key)


def _reduce(function: Global, arguments: tuple[Any, ...]) -> object:
    """What the few functions that are known would return."""
    name = f"{function.module}.{function.name}"
    if name in _IGNORED:
        return IGNORED
    if name == "collections.OrderedDict" and not arguments:
        return {}
    if name == "torch._utils._rebuild_parameter" and arguments and isinstance(arguments[0], _Tensor):
        return arguments[0]
    if name in ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor") and len(arguments) >= 4:
        storage, offset, shape, strides = arguments[:4]
        sizes = (offset, *shape, *strides) if type(shape) is tuple and type(strides) is tuple else (None,)
        if not isinstance(storage, _Storage) or not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError("a tensor without a storage, or with a wrong shape")
        return _Tensor(storage, offset, shape, strides)
    raise Refused(f"a call of {function}")


def _flat(found: object) -> dict[str, _Tensor]:
    """Tensors by their names, those of dictionaries in dictionaries with dots between."""
    if isinstance(found, dict):
        inner = [found[key] for key in _STATE if isinstance(found.get(key), dict)]
        found = inner[0] if len(inner) == 1 else found
    if not isinstance(found, dict):
        raise Refused("something else than a dictionary of tensors")
    tensors: dict[str, _Tensor] = {}
    entries, seen = [("", found)], 0
    while entries:
        prefix, dictionary = entries.pop()
        for key, value in dictionary.items():
            seen += 1
            # A dictionary can hold itself.
            if seen > _MOST_ENTRIES:
                raise ValueError(f"more than {_MOST_ENTRIES} entries")
            if isinstance(value, dict):
                entries.append((f"{prefix}{key}."[:200], value))
            elif isinstance(value, _Tensor):
                tensors[f"{prefix}{key}"] = value
    return tensors


def _arrays(
    source: Source, tensors: dict[str, _Tensor], numbers: Callable[[_Storage], bytes], order: str
) -> dict[str, NDArray[Any]]:
    stored: dict[str, NDArray[Any]] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for name, tensor in tensors.items():
        storage = tensor.storage
        if storage.key not in stored:
            stored[storage.key] = _typed(numbers(storage), storage.dtype, order)
        arrays[name] = _view(source, stored[storage.key], tensor)
    return arrays


def _view(source: Source, stored: NDArray[Any], tensor: _Tensor) -> NDArray[Any]:
    if len(tensor.shape) != len(tensor.strides) or len(tensor.shape) > 8:
        raise ValueError("a tensor with another number of strides than axes")
    if math.prod(tensor.shape) == 0:
        return np.empty(tensor.shape, stored.dtype)
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
    if tensor.offset + last >= stored.size:
        raise ValueError("a tensor that reaches beyond its storage")
    source.take(math.prod(tensor.shape) * stored.itemsize)
    # Safe: no element of the view lies outside, as was just checked.
    view = np.lib.stride_tricks.as_strided(
        stored[tensor.offset :], tensor.shape, [stride * stored.itemsize for stride in tensor.strides]
    )
    return view.astype(stored.dtype.newbyteorder("="), order="C")


def _typed(content: bytes | memoryview, dtype: str, order: str) -> NDArray[Any]:
    if dtype == _BFLOAT16:  # the upper half of a float32
        return (np.frombuffer(content, f"{order}u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(content, order + dtype)


def _width(dtype: str) -> int:
    return 2 if dtype == _BFLOAT16 else np.dtype(dtype).itemsize


def _is_safetensors(source: Source) -> bool:
    length = int.from_bytes(source.head[:8], "little")
    return source.head[8:9] == b"{" and 2 <= length <= source.size - 8


def _safetensors_model(source: Source, options: Options) -> Model:
    (length,) = struct.unpack_from("<Q", source.head)
    if length > _LONGEST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = read_json(source.data[8 : 8 + length])
    body = memoryview(source.data)[8 + length :]
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        shape, (begin, end), dtype = entry["shape"], entry["data_offsets"], _TYPES[entry["dtype"]]
        if not all(type(number) is int and number >= 0 for number in (*shape, begin, end)):
            raise ValueError(f"a wrong shape or place of {described(name)}")
        if end > len(body) or end - begin != _width(dtype) * math.prod(shape):
            raise ValueError(f"{described(name)} has another size than its shape")
        arrays[name] = _typed(body[begin:end], dtype, "<").reshape(shape)
        source.take(arrays[name].nbytes)
    return named_arrays.model(source, arrays, options)


TORCH = Format(
    "PyTorch file",
    (".pt", ".pth"),
    lambda source: source.head.startswith(_LEGACY) or bool(_pickles(source)),
    named_arrays.OPTIONS,
    _torch_model,
)
SAFETENSORS = Format(
    "safetensors file", (".safetensors",), _is_safetensors, named_arrays.OPTIONS, _safetensors_model
)
