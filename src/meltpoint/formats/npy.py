"""NumPy's .npy: one array, read without pickle. The entries of an .npz file are such files too."""

import io
import struct
import warnings
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.bounded import Allowance, read_promised
from meltpoint.formats.format import Format, without_name
from meltpoint.formats.source import Source

NUMBERS = "biuf"
"""NumPy's kinds of type that are real numbers."""

_LONGEST_HEADER = 1 << 16  # that of a structured array may be longer, and claim 4 GB


def read_header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of the array that follows."""
    version = npy.read_magic(stream)
    layout, read = (
        ("<H", npy.read_array_header_1_0) if version == (1, 0) else ("<I", npy.read_array_header_2_0)
    )
    stored = stream.read(struct.calcsize(layout))
    (length,) = struct.unpack(layout, stored)
    if version[0] > 3 or length > _LONGEST_HEADER:
        raise _wrong_type(where, "a structured array")
    with warnings.catch_warnings(action="ignore"):  # of a header written by Python 2
        shape, columns_first, dtype = read(io.BytesIO(stored + stream.read(length)))
    if version > (1, 0) and dtype.names:
        raise _wrong_type(where, "a structured array")
    return shape, columns_first, dtype


def read_array(
    stream: IO[bytes], available: int, where: str, kinds: str, allowance: Allowance
) -> NDArray[Any]:
    """The array in a stream, whose type must be of one of these kinds."""
    shape, columns_first, dtype = read_header(stream, where)
    if dtype.hasobject:
        raise _wrong_type(where, "pickled Python objects, which are never opened,")
    if dtype.kind not in kinds:
        raise _wrong_type(where, f"values of type {dtype}")
    if columns_first:
        return read_promised(stream, dtype, shape[::-1], available, allowance).T
    return read_promised(stream, dtype, shape, available, allowance)


def _wrong_type(where: str, found: str) -> InputError:
    return InputError(
        found=f"{found} in {where}",
        expected="plain numbers",
        remedy="convert them to an array of numbers and save that with numpy.savez",
    )


def read(source: Source) -> NDArray[Any]:
    """The array of a .npy file."""
    return read_array(source.stream(), source.most, source.name, NUMBERS, source.allowance)


def _array(source: Source, name: str | None) -> NDArray[Any]:
    without_name(source, name)
    return read(source)


FORMAT = Format(".npy file", (".npy",), lambda source: source.head.startswith(b"\x93NUMPY"), array=_array)
