"""Sparse matrices written out: those of MATLAB files and of scipy.sparse.save_npz."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats import npz
from meltpoint.formats.bounded import Allowance, allowance_of, reading
from meltpoint.formats.formats import Format

_SMALL, _EXPANSION = 1 << 22, 1000
"""Bytes that sparse matrices may take when written out, in any case and for each byte of their file.

Their size in the file says nothing about that: a few hundred bytes could be millions of units.
"""

_COMPRESSED, _COORDINATES = ("indices", "indptr"), ("row", "col")


def sparse_allowance(path: Path, file_size: int) -> Allowance:
    """What the sparse matrices of a file of this size may take when they are written out."""
    return allowance_of(path, file_size, _SMALL, _EXPANSION)


def take_dense(allowance: Allowance, shape: tuple[int, ...], itemsize: int, where: str, remedy: str) -> None:
    """Count a sparse matrix that is about to be written out; one that is too large is an InputError."""
    rows, columns = shape
    if rows < 0 or columns < 0 or rows * columns * itemsize > allowance.left:
        raise InputError(
            found=f"a sparse matrix of shape {shape} in {where}, a small file",
            expected=f"at most {allowance.left:,} bytes when written out",
            remedy=remedy,
        )
    allowance.take(rows * columns * itemsize)


def columns_written_out(
    shape: tuple[int, ...],
    indices: NDArray[np.int64],
    starts: NDArray[np.int64],
    values: NDArray[Any],
) -> NDArray[Any]:
    """A sparse matrix as a dense one; column j has the rows indices[starts[j]:starts[j+1]]."""
    rows, columns = shape
    counts = np.diff(starts)
    if rows < 0 or starts.size != columns + 1 or starts[0] != 0 or (counts < 0).any():
        raise ValueError("the columns of a sparse matrix are not in order")
    # More may be allotted than is used.
    indices, values = indices[: starts[-1]], values[: starts[-1]]
    if indices.size != starts[-1] or values.size != starts[-1] or (indices < 0).any():
        raise ValueError("a sparse matrix has fewer numbers than its columns promise")
    dense = np.zeros(shape, values.dtype)
    dense[indices, np.repeat(np.arange(columns), counts)] = values
    return dense


def is_scipy_sparse(names: list[str]) -> bool:
    """Whether the entries of a .npz file are those of scipy.sparse.save_npz."""
    present = {*names}
    return present >= {"format", "shape", "data"} and bool(
        present >= {*_COMPRESSED} or present >= {*_COORDINATES}
    )


def read_scipy_sparse(path: Path, names: list[str]) -> NDArray[Any]:
    """The matrix of scipy.sparse.save_npz, written out."""
    kind = _COMPRESSED if {*_COMPRESSED} <= {*names} else _COORDINATES
    arrays = npz.read_entries(path, ["shape", "data", *kind])
    label = npz.read_entries(path, ["format"], "SU")["format"]
    with reading(path, f"{Format.NPZ.value} of a sparse matrix"):
        format = label.item()
        format = format.decode("ascii") if isinstance(format, bytes) else str(format)
        if format not in ("csr", "csc", "coo"):
            raise InputError(
                found=f"a sparse matrix in the format {format!r} in {path}",
                expected="csr, csc or coo",
                remedy="save it with scipy.sparse.save_npz(path, matrix.tocsr())",
            )
        shape = tuple(int(length) for length in arrays["shape"])
        values = arrays["data"]
        first, second = (arrays[name].astype(np.int64) for name in kind)
        if len(shape) != 2 or values.ndim != 1 or first.ndim != 1 or second.ndim != 1:
            raise ValueError(f"a sparse matrix of shape {shape} with numbers of shape {values.shape}")
        allowance = sparse_allowance(path, path.stat().st_size)
        remedy = "save it with numpy.savez, as matrix.toarray(), or a part of it"
        take_dense(allowance, shape, values.itemsize, str(path), remedy)
        if format == "csr":
            return columns_written_out(shape[::-1], first, second, values).T
        if format == "csc":
            return columns_written_out(shape, first, second, values)
        if first.size != values.size or second.size != values.size or (first < 0).any() or (second < 0).any():
            raise ValueError("a sparse matrix does not have a position for each number")
        dense = np.zeros(shape, values.dtype)
        np.add.at(dense, (first, second), values)
        return dense
