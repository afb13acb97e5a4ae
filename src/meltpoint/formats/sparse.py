"""Sparse matrices written out: those of MATLAB files and of scipy.sparse.save_npz."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.source import Source

_INDICES = (("indices", "indptr"), ("row", "col"))


def take_dense(source: Source, shape: tuple[int, ...], itemsize: int, where: str, remedy: str) -> None:
    """Count a sparse matrix that is about to be written out; one that is too large is an InputError.

    Its size in the file says nothing about that: a few hundred bytes could be millions of units.
    """
    rows, columns = shape
    if rows < 0 or columns < 0 or rows * columns * itemsize > source.allowance.left:
        raise InputError(
            found=f"a sparse matrix of shape {shape} in {where}, a small file",
            expected=f"at most {source.allowance.left:,} bytes when written out",
            remedy=remedy,
        )
    source.allowance.take(rows * columns * itemsize)


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


def parts_of(names: Sequence[str]) -> list[str]:
    """Names of the arrays that make a matrix of scipy.sparse.save_npz; none if these entries are not such a file."""
    if not {"format", "shape", "data"} <= {*names}:
        return []
    return next((["shape", "data", *kind] for kind in _INDICES if {*kind} <= {*names}), [])


def matrix(source: Source, arrays: Mapping[str, NDArray[Any]], label: NDArray[Any]) -> NDArray[Any]:
    """The matrix of scipy.sparse.save_npz, written out."""
    format = label.item()
    format = format.decode("ascii") if isinstance(format, bytes) else str(format)
    if format not in ("csr", "csc", "coo"):
        raise InputError(
            found=f"a sparse matrix in the format {format!r} in {source.name}",
            expected="csr, csc or coo",
            remedy="save it with scipy.sparse.save_npz(path, matrix.tocsr())",
        )
    lengths, values, *indices = arrays.values()
    shape = tuple(int(length) for length in lengths)
    first, second = (array.astype(np.int64) for array in indices)
    if len(shape) != 2 or values.ndim != 1 or first.ndim != 1 or second.ndim != 1:
        raise ValueError(f"a sparse matrix of shape {shape} with numbers of shape {values.shape}")
    remedy = "save it with numpy.savez, as matrix.toarray(), or a part of it"
    take_dense(source, shape, values.itemsize, source.name, remedy)
    if format == "csr":
        return columns_written_out(shape[::-1], first, second, values).T
    if format == "csc":
        return columns_written_out(shape, first, second, values)
    if first.size != values.size or second.size != values.size or (first < 0).any() or (second < 0).any():
        raise ValueError("a sparse matrix does not have a position for each number")
    dense = np.zeros(shape, values.dtype)
    np.add.at(dense, (first, second), values)
    return dense
