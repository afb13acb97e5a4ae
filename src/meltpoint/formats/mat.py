"""Arrays of numbers in MATLAB files of version 5 to 7.2.

SciPy's reader of these files is compiled code that trusts them: a wrong type code, or a sparse index out of
range, ends the process (scipy pull request 25829). Here only NumPy's checked operations touch the bytes, and
tests/formats hold the result against SciPy's.

A file is 128 bytes of header and then data elements, each a tag (type, size) and its content. A variable is
an element that holds elements: flags, axes, name, numbers; it may be compressed as a whole. The layout is in
MathWorks' "MAT-File Format".
"""

import math
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats import named_arrays
from meltpoint.formats.format import Format, Options, choose
from meltpoint.formats.npz import as_dense
from meltpoint.formats.source import Source
from meltpoint.models import Model

_FILE_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_SPARSE, _DENSE = 5, range(6, 16)
_COMPLEX = 0x0800

# Enough for the flags, axes and name of any variable MATLAB can make.
_VARIABLE_HEADER = 4096

_Element: TypeAlias = tuple[int, memoryview]
"""Type code and content of a data element."""


@dataclass(frozen=True)
class _Variable:
    """A numeric variable: its header, and the element it came from, still packed."""

    name: str
    shape: tuple[int, ...]
    is_sparse: bool
    is_complex: bool
    order: str
    element: _Element


def is_mat(source: Source) -> bool:
    """Whether it is a .mat file of version 5 to 7.2."""
    return source.head[124:128] in (b"\x00\x01IM", b"\x01\x00MI")


def variables(source: Source) -> dict[str, _Variable]:
    """The numeric variables of a .mat file by name; cells, structs and text are passed over."""
    data = memoryview(source.data)
    order = "<" if data[126:128] == b"IM" else ">"
    found: dict[str, _Variable] = {}
    for element in _elements(data[_FILE_HEADER:], order):
        parts = _elements(_content(element, order, limit=_VARIABLE_HEADER), order)
        flags = int(_numbers(_next(parts), order)[0])
        kind = flags & 0xFF
        if kind not in (_SPARSE, *_DENSE):
            continue
        shape = tuple(int(length) for length in _numbers(_next(parts), order))
        name = bytes(_next(parts)[1]).decode("latin-1")
        if not name:
            continue  # what MATLAB keeps for itself: the workspace of functions and objects
        if name in found:
            raise ValueError(f"variable {name!r} is there twice")
        found[name] = _Variable(name, shape, kind == _SPARSE, bool(flags & _COMPLEX), order, element)
    return found


def read_variables(source: Source, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """The named numeric variables of a .mat file in the type they are stored in, sparse ones written out."""
    found = source.once(variables)
    return {name: _numbers_of(found[name], source) for name in names}


def _numbers_of(variable: _Variable, source: Source) -> NDArray[Any]:
    where, order = f"{source.name}:{variable.name}", variable.order
    if variable.is_complex:
        raise InputError(
            found=f"complex numbers in {where}", expected="real numbers", remedy="save its real part"
        )
    parts = _elements(_content(variable.element, order, source), order)
    for _ in ("flags", "shape", "name"):
        _next(parts)
    if variable.is_sparse:
        indices, starts, values = (_numbers(_next(parts), order) for _ in range(3))
        remedy = "save it in MATLAB with full(...), or a part of it"
        return as_dense(source, "csc", variable.shape, (values, indices, starts), where, remedy)
    values = _numbers(_next(parts), order)
    # Not left to reshape, to which -1 is no error.
    if math.prod(variable.shape) != values.size:
        raise ValueError(f"{variable.name} promises shape {variable.shape}, there are {values.size} numbers")
    return values.reshape(variable.shape, order="F")


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    position = 0
    while position < len(data):
        kind, size = struct.unpack_from(f"{order}II", data, position)
        begin, end = position + 8, position + 8 + size
        position = end if kind == _COMPRESSED else end + -size % 8
        if kind >> 16:
            # A small element: the size is the upper half of the type, the content takes the size's place.
            kind, size = kind & 0xFFFF, kind >> 16
            begin, end, position = begin - 4, begin - 4 + min(size, 4), begin
        if end > len(data):
            raise ValueError(f"it ends {end - len(data)} bytes too early")
        yield kind, data[begin:end]


def _next(parts: Iterator[_Element]) -> _Element:
    part = next(parts, None)
    if part is None:
        raise ValueError("a variable lacks a part")
    return part


def _content(element: _Element, order: str, source: Source | None = None, limit: int = 0) -> memoryview:
    """What a variable's element holds, counted for its file, or at most `limit` bytes of it if it is compressed."""
    kind, packed = element
    if kind == _MATRIX:
        return packed
    if kind != _COMPRESSED:
        raise ValueError(f"a data element of type {kind} in place of a variable")
    stream = zlib.decompressobj()
    kind, size = struct.unpack(f"{order}II", stream.decompress(packed, 8))
    # To zlib a limit of 0 means none.
    if kind != _MATRIX or size == 0:
        raise ValueError(f"a compressed element of type {kind} that promises {size} bytes")
    wanted = min(size, limit) if limit else size
    if source is not None:
        source.take(wanted)
    content = stream.decompress(stream.unconsumed_tail, wanted)
    if len(content) < wanted:
        raise ValueError(f"a compressed variable promises {size} bytes, it ends after {len(content)}")
    # At its end the stream checks its sum.
    if not limit and not stream.eof:
        raise ValueError(f"a compressed variable does not end after the {size} bytes it promises")
    return memoryview(content)


def _numbers(element: _Element, order: str) -> NDArray[Any]:
    kind, content = element
    if kind not in _NUMBERS:
        raise ValueError(f"numbers of unknown type {kind}")
    dtype = np.dtype(order + _NUMBERS[kind])
    return np.frombuffer(content, dtype).astype(dtype.newbyteorder("="))


def _model(source: Source, options: Options) -> Model:
    present = source.once(variables)
    if "hidpen" in present:
        raise InputError(
            found=f"{source.name} with the variables {', '.join(sorted(present))}",
            expected="an RBM: vishid, visbiases, hidbiases, and no second hidden layer",
            remedy="read them with meltpoint.formats.load.read_array and build the model from them",
        )
    return named_arrays.model(source, read_variables(source, present), options)


def _data(source: Source, _: Options, name: str | None) -> NDArray[Any]:
    """The variable; batches (case, pixel, batch) become examples (example, pixel), batch after batch."""
    name = choose(source, name, list(source.once(variables)))
    array = read_variables(source, [name])[name]
    return array.transpose(2, 0, 1).reshape(-1, array.shape[1]) if array.ndim == 3 else array


FORMAT = Format(".mat file", (".mat",), is_mat, named_arrays.OPTIONS, _model, _data, has_names=True)
