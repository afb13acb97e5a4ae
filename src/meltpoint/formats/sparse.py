"""Sparse matrices as dense ones: those of MATLAB files and of scipy.sparse.save_npz."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.source import Source


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
    by_rows = format == "csr"
    matrix = sparse.csr_array((values[:end], first[:end], second), shape=shape if by_rows else shape[::-1])
    matrix.check_format(full_check=True)
    return matrix.toarray() if by_rows else matrix.toarray().T


def parts_of(names: Sequence[str]) -> list[str]:
    """Names of the arrays that make a matrix of scipy.sparse.save_npz; none if these entries are not such a file."""
    if not {"format", "shape", "data"} <= {*names}:
        return []
    kinds = (("indices", "indptr"), ("row", "col"))
    return next((["shape", "data", *kind] for kind in kinds if {*kind} <= {*names}), [])


def matrix(source: Source, arrays: Mapping[str, NDArray[Any]], label: NDArray[Any]) -> NDArray[Any]:
    """The matrix of scipy.sparse.save_npz, written out."""
    format = label.item()
    format = format.decode("ascii") if isinstance(format, bytes) else str(format)
    if format not in ("csr", "csc", "coo"):
        remedy = "save it with scipy.sparse.save_npz(path, matrix.tocsr())"
        raise source.refusal(f"a sparse matrix in the format {format!r}", "csr, csc or coo", remedy)
    lengths, *parts = arrays.values()
    remedy = "save it with numpy.savez, as matrix.toarray(), or a part of it"
    return as_dense(source, format, tuple(map(int, lengths)), parts, source.name, remedy)
