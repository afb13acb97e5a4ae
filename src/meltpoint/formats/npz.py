"""NumPy's own formats, .npy and .npz: read without pickle, written with the same bytes every time."""

import io
import warnings
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

from numpy.lib import format as npy
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.bounded import (
    DEFLATE_RATIO,
    Allowance,
    allowance_of,
    open_regular,
    read_promised,
    reading,
    size_of,
)
from meltpoint.formats.formats import Format

NUMBERS = "biuf"
"""NumPy's kinds of type that are real numbers."""

# The oldest time a zip file can hold: a file must not depend on the moment it was written.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX = 3

_AT_ONCE = 1 << 20
"""Bytes of arrays up to which a file is made in memory: zipfile writes each array in several pieces, and a chunk of a
run has a handful of small ones."""


def read_npy(path: Path) -> NDArray[Any]:
    """The array of a .npy file."""
    with reading(path, Format.NPY.value), open_regular(path) as file:
        size = size_of(file)
        return _read_array(file, size, str(path), NUMBERS, allowance_of(path, size))


def entry_names(path: Path) -> list[str]:
    """Names of the arrays in a .npz file, in the order of the file."""
    with reading(path, Format.NPZ.value), open_regular(path) as file, zipfile.ZipFile(file) as archive:
        return _names(archive)


def read_entries(path: Path, names: Collection[str], kinds: str = NUMBERS) -> dict[str, NDArray[Any]]:
    """The named arrays of a .npz file; `kinds` are NumPy's kinds of type that are allowed."""
    with reading(path, Format.NPZ.value), open_regular(path) as file:
        return _read_entries(file, names, path, kinds)


def read_npz(
    file: BinaryIO, path: Path, kinds: str = NUMBERS, names: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """All arrays of a .npz file that is open, or the named ones; `path` is its name in messages."""
    with reading(path, Format.NPZ.value):
        return _read_entries(file, names, path, kinds)


def write_npz(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a compressed .npz whose bytes depend on nothing but the arrays and their order."""
    if sum(array.nbytes for array in arrays.values()) > _AT_ONCE:
        _write_archive(file, arrays)
        return
    content = io.BytesIO()
    _write_archive(content, arrays)
    file.write(content.getbuffer())


def _write_archive(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", date_time=_NO_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = _UNIX
            with archive.open(info, "w", force_zip64=True) as entry:
                npy.write_array(entry, array, version=(1, 0), allow_pickle=False)


def _names(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def _read_entries(
    file: BinaryIO, names: Collection[str] | None, path: Path, kinds: str
) -> dict[str, NDArray[Any]]:
    size = size_of(file)
    allowance = allowance_of(path, size)
    with zipfile.ZipFile(file) as archive:
        wanted = _names(archive) if names is None else names
        return {name: _read_entry(archive, name, path, kinds, size, allowance) for name in wanted}


def _read_entry(
    archive: zipfile.ZipFile, name: str, path: Path, kinds: str, file_size: int, allowance: Allowance
) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    # bzip2 and lzma, which numpy.savez never uses, unpack without a bound.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed neither by numpy.savez nor by numpy.savez_compressed")
    with archive.open(info) as entry:
        return _read_array(entry, file_size * DEFLATE_RATIO, f"{path}:{name}", kinds, allowance)


def _read_array(
    stream: IO[bytes], available: int, where: str, kinds: str, allowance: Allowance
) -> NDArray[Any]:
    # Plain numbers are always version 1.0, whose header is at most 64 kB; that of 2.0 could claim 4 GB.
    if npy.read_magic(stream) != (1, 0):
        raise _wrong_type(where, "a structured array")
    with warnings.catch_warnings(action="ignore"):  # of a header written by Python 2
        shape, fortran_order, dtype = npy.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise _wrong_type(where, "pickled Python objects, which are never opened,")
    if dtype.kind not in kinds:
        raise _wrong_type(where, f"values of type {dtype}")
    if fortran_order:
        return read_promised(stream, dtype, shape[::-1], available, allowance).T
    return read_promised(stream, dtype, shape, available, allowance)


def _wrong_type(where: str, found: str) -> InputError:
    return InputError(
        found=f"{found} in {where}",
        expected="plain numbers",
        remedy="convert them to an array of numbers and save that with numpy.savez",
    )
