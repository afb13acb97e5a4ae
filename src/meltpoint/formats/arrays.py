"""Data from a file, whatever its format."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats import idx, mat, npz, sparse, text
from meltpoint.formats.formats import Format, detect

_SINGLE: dict[Format, Callable[[Path], NDArray[Any]]] = {
    Format.NPY: npz.read_npy,
    Format.IDX: idx.read_idx,
    Format.GZIP: idx.read_gzip,
    Format.TEXT: text.read_text,
}
"""Readers of the formats that hold one array without a name."""


def read_array(path: str | os.PathLike[str], name: str | None = None) -> NDArray[Any]:
    r"""The array in a .npy, .npz, .mat, .csv or MNIST idx file (.gz too), with the values as stored.

    In files that hold several, name the array, or write it behind a colon: `data.npz:test`. Images of an idx
    file and batches (case, pixel, batch) of a .mat file become (example, pixel).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "test.csv"
    ...     _ = file.write_text("left,right\n0,1\n1,1")
    ...     read_array(file)
    array([[0., 1.],
           [1., 1.]])
    """
    file = Path(path)
    if name is None:
        file, name = split_name(path)
    format = detect(file)
    if format is Format.NPZ:
        names = npz.entry_names(file)
        if name is None and sparse.is_scipy_sparse(names):
            return sparse.read_scipy_sparse(file, names)
        name = _choose(name, names, file)
        return npz.read_entries(file, [name])[name]
    if format is Format.MAT:
        name = _choose(name, mat.variable_names(file), file)
        return mat.unroll(mat.read_variables(file, [name])[name])
    if name is not None:
        raise InputError(
            found=f"name {name!r} for {file}, a {format.value}, whose one array has no name",
            expected="no name",
            remedy="leave the name out",
        )
    if format not in _SINGLE:
        raise InputError(
            found=f"{file}, a {format.value}",
            expected="a file of numbers",
            remedy="read it with meltpoint.datasets.read",
        )
    return _SINGLE[format](file)


def split_name(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """A path and the array's name behind its last colon, None if there is none.

    A file that exists under the whole path is meant as it is; the colon of a drive letter separates nothing.

    >>> split_name("data.npz:test")[1]
    'test'
    >>> split_name("C:/data.npz")[1] is None
    True
    """
    whole = os.fspath(path)
    head, _, tail = whole.rpartition(":")
    is_drive = len(head) == 1 and head.isalpha() and not Path(head).is_file()
    in_folders = ("/" in tail or "\\" in tail) and not Path(head).is_file()
    if not head or not tail or is_drive or in_folders or Path(whole).exists():
        return Path(whole), None
    return Path(head), tail


def _choose(name: str | None, names: list[str], path: Path) -> str:
    """The name asked for, or the only one there is."""
    listed = ", ".join(names) or "none"
    if not names:
        raise InputError(
            found=f"{path}, without an array of numbers",
            expected="at least one",
            remedy="check how it was saved",
        )
    if name is None and len(names) > 1:
        raise InputError(
            found=f"{len(names)} arrays in {path}: {listed}",
            expected="the name of one of them",
            remedy=f"name it behind a colon, {path}:{names[0]}",
        )
    if name is not None and name not in names:
        raise InputError(
            found=f"no array {name!r} in {path}",
            expected=f"one of its arrays: {listed}",
            remedy="check the name",
        )
    return names[0] if name is None else name
