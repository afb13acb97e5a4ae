"""NumPy's files: .npy (one array) and .npz (arrays with names), read without pickle; sparse matrices and skops in them.

What is written has the same bytes every time.
"""

import io
import warnings
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats import named_arrays
from meltpoint.formats.documents import read_json
from meltpoint.formats.format import Format, Options, choose
from meltpoint.formats.source import DEFLATE_RATIO, Source, read_promised, reading
from meltpoint.models import Model

NUMBERS = "biuf"
"""NumPy's kinds of type that are real numbers."""

_NAME = ".npz file"
_LONGEST_HEADER = 1 << 16  # that of a structured array may be longer, and claim 4 GB
# The oldest time a zip file can hold: a file must not depend on the moment it was written.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_AT_ONCE = 1 << 20

_SCHEMA = "schema.json"
_LONGEST_SCHEMA = 1 << 24


def read_header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of the array that follows in a .npy file."""
    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    stored = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(stored, "little")
    if version[0] > 3 or length > _LONGEST_HEADER:
        raise _wrong_type(where, "a structured array")
    with warnings.catch_warnings(action="ignore"):  # of a header written by Python 2
        shape, columns_first, dtype = read(io.BytesIO(stored + stream.read(length)))
    if version > (1, 0) and dtype.names:
        raise _wrong_type(where, "a structured array")
    return shape, columns_first, dtype


def read_npy(
    source: Source, stream: IO[bytes], available: int, where: str, kinds: str = NUMBERS
) -> NDArray[Any]:
    """The array in a stream of .npy, whose type must be of one of these kinds."""
    shape, columns_first, dtype = read_header(stream, where)
    if dtype.hasobject:
        raise _wrong_type(where, "pickled Python objects, which are never opened,")
    if dtype.kind not in kinds:
        raise _wrong_type(where, f"values of type {dtype}")
    if columns_first:
        return read_promised(source, stream, dtype, shape[::-1], available).T
    return read_promised(source, stream, dtype, shape, available)


def _wrong_type(where: str, found: str) -> InputError:
    return InputError(
        found=f"{found} in {where}",
        expected="plain numbers",
        remedy="convert them to an array of numbers and save that with numpy.savez",
    )


def is_npy(source: Source) -> bool:
    """Whether it is one array."""
    return source.head.startswith(b"\x93NUMPY")


def is_zip(source: Source) -> bool:
    """Whether it is a zip archive."""
    return source.head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def archive_of(source: Source) -> zipfile.ZipFile:
    """The zip archive, open for reading."""
    return source.closing.enter_context(zipfile.ZipFile(source.open()))


def members(source: Source) -> dict[str, zipfile.ZipInfo]:
    """The entries of a zip archive by name, none if it is no archive."""
    return {info.filename: info for info in source.once(archive_of).infolist()} if is_zip(source) else {}


def _opened_entry(source: Source, name: str) -> IO[bytes]:
    info = source.once(members)[name]
    # bzip2 and lzma, which numpy.savez never uses, unpack without a bound.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name[:40]!r} is compressed neither by numpy.savez nor by numpy.savez_compressed")
    return source.once(archive_of).open(info)


def content(source: Source, name: str, longest: int) -> bytes:
    """An entry of a zip archive, of at most this many bytes."""
    size = source.once(members)[name].file_size
    if size > min(longest, DEFLATE_RATIO * source.size):
        raise ValueError(f"{name[:40]!r} promises {size} bytes")
    with _opened_entry(source, name) as entry:
        return entry.read(size + 1)[:size]


def array_names(source: Source) -> list[str]:
    """Names of the arrays in a .npz file, in the order of the file; none if it is no such file."""
    return [name.removesuffix(".npy") for name in source.once(members) if name.endswith(".npy")]


def entry_names(path: Path) -> list[str]:
    """Names of the arrays in the .npz file at a path; none if it is another file."""
    with Source(path) as source, reading(path, _NAME):
        return array_names(source)


def read_arrays(source: Source, names: Collection[str], kinds: str = NUMBERS) -> dict[str, NDArray[Any]]:
    """The named arrays of a .npz file; `kinds` are NumPy's kinds of type that are allowed."""
    arrays: dict[str, NDArray[Any]] = {}
    for name in names:
        with _opened_entry(source, f"{name}.npy") as entry:
            most, where = DEFLATE_RATIO * source.size, f"{source.name}:{name}"
            arrays[name] = read_npy(source, entry, most, where, kinds)
    return arrays


def read_npz(
    file: BinaryIO, path: Path, kinds: str = NUMBERS, names: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """All arrays of a .npz file that is open, or the named ones; `path` is its name in messages."""
    source = Source(path, content=file)
    with reading(path, _NAME), source.once(archive_of):
        return read_arrays(source, array_names(source) if names is None else names, kinds)


def write_npz(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a compressed .npz whose bytes depend on nothing but the arrays and their order."""
    # zipfile writes each array in several pieces: small files are made in memory, and written with one call.
    is_small = sum(array.nbytes for array in arrays.values()) <= _AT_ONCE
    target = io.BytesIO() if is_small else file
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", date_time=_NO_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = _UNIX
            with archive.open(info, "w", force_zip64=True) as entry:
                npy.write_array(entry, array, version=(1, 0), allow_pickle=False)
    if target is not file:
        target.seek(0)
        file.write(target.read())


def as_dense(
    source: Source,
    format: str,
    shape: tuple[int, ...],
    arrays: Sequence[NDArray[Any]],
    where: str,
    remedy: str,
) -> NDArray[Any]:
    """A matrix in the format csr, csc or coo as a dense one; `arrays` are its numbers and two of its indices."""
    from scipy import sparse  # a tenth of a second, which models without sparse matrices need not pay

    values, first, second = arrays
    if len(shape) != 2 or any(array.ndim != 1 for array in arrays):
        raise ValueError(f"a sparse matrix of shape {shape} with numbers of shape {values.shape}")
    # The size of the file says nothing about the matrix: a few hundred bytes could be millions of units.
    n_bytes = shape[0] * shape[1] * values.itemsize
    if min(shape) < 0 or n_bytes > source.left:
        raise InputError(
            found=f"a sparse matrix of shape {shape} in {where}, a small file",
            expected=f"at most {source.left:,} bytes when written out",
            remedy=remedy,
        )
    source.take(n_bytes)
    first, second = first.astype(np.int64), second.astype(np.int64)
    if format == "coo":
        return sparse.coo_array((values, (first, second)), shape=shape).toarray()
    # More may be allotted than is used.
    end = int(second[-1]) if second.size else -1
    if end < 0:
        raise ValueError("a sparse matrix without the beginnings of its columns")
    # By rows in either case: SciPy writes csc out through a copy by rows.
    by_rows = format == "csr"
    matrix = sparse.csr_array((values[:end], first[:end], second), shape=shape if by_rows else shape[::-1])
    matrix.check_format(full_check=True)
    return matrix.toarray() if by_rows else matrix.toarray().T


def _sparse_matrix(source: Source, indices: Sequence[str]) -> NDArray[Any]:
    """The matrix of scipy.sparse.save_npz, written out."""
    label = read_arrays(source, ["format"], "SU")["format"].item()
    format = label.decode("ascii") if isinstance(label, bytes) else str(label)
    if format not in ("csr", "csc", "coo"):
        remedy = "save it with scipy.sparse.save_npz(path, matrix.tocsr())"
        raise source.refusal(f"a sparse matrix in the format {format!r}", "csr, csc or coo", remedy)
    lengths, *parts = read_arrays(source, ["shape", "data", *indices]).values()
    remedy = "save it with numpy.savez, as matrix.toarray(), or a part of it"
    return as_dense(source, format, tuple(map(int, lengths)), parts, source.name, remedy)


def _model(source: Source, options: Options) -> Model:
    arrays = read_arrays(source, array_names(source), kinds="biufUS")
    numbers = {name: array for name, array in arrays.items() if array.dtype.kind in NUMBERS}
    return named_arrays.model(source, numbers, options)


def _data(source: Source, _: Options, name: str | None) -> NDArray[Any]:
    names = array_names(source)
    for indices in (("indices", "indptr"), ("row", "col")):
        if name is None and {"format", "shape", "data", *indices} <= {*names}:
            return _sparse_matrix(source, indices)
    name = choose(source, name, names)
    return read_arrays(source, [name])[name]


def _skops_model(source: Source, options: Options) -> Model:
    """The only BernoulliRBM of scikit-learn in `schema.json`, alone or in a Pipeline, with a .npy for each array."""
    found: list[dict[str, Any]] = []
    nodes = [read_json(content(source, _SCHEMA, _LONGEST_SCHEMA))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            if node.get("__class__") == "BernoulliRBM":
                found.append(node)
            nodes.extend(node.values())
        elif isinstance(node, list):
            nodes.extend(node)
    if len(found) != 1:
        remedy = "dump the fitted BernoulliRBM alone: skops.io.dump(rbm, path)"
        raise source.refusal(f"{len(found) or 'no'} BernoulliRBM", "one", remedy)
    attributes = found[0]["content"]["content"]
    wanted = ("components_", "intercept_visible_", "intercept_hidden_")
    if missing := [name for name in wanted if name not in attributes]:
        raise source.refusal(
            f"a BernoulliRBM without {' and '.join(missing)}",
            "one that was fitted",
            "fit it, and dump it again",
        )
    files = {name: attributes[name]["file"].removesuffix(".npy") for name in wanted}
    arrays = read_arrays(source, list(files.values()))
    return named_arrays.model(source, {name: arrays[file] for name, file in files.items()}, options)


SKOPS = Format("skops file", (".skops",), lambda source: _SCHEMA in source.once(members), model=_skops_model)
NPZ = Format(_NAME, (".npz",), is_zip, named_arrays.OPTIONS, _model, _data, has_names=True)
NPY = Format(
    ".npy file",
    (".npy",),
    is_npy,
    data=lambda source, _options, _name: read_npy(source, source.stream(), source.most, source.name),
)
