"""Models on disk: meltpoint's own .npz format, and the .mat files of Salakhutdinov's RBM code.

A model file is a plain .npz, so `numpy.load` opens it too. It has

    meltpoint_kind      "RBM", "DBM", "DBN", "Ising", "Potts" or "FactorGraph"; "RBM:spin,bernoulli" if not all units
                        are Bernoulli (version 2)
    meltpoint_version   version of this format
    meltpoint_note      free text, if one was given

and the parameters by the names in parameters.py.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from meltpoint.errors import InputError
from meltpoint.formats import mat, npz
from meltpoint.formats.atomic import atomic_write
from meltpoint.formats.bounded import reading
from meltpoint.formats.formats import Format, detect
from meltpoint.formats.parameters import Model, ParameterArrays, from_arrays, is_kind, names_of, to_arrays
from meltpoint.models import KINDS

VERSION = 2
"""Version of the format; a file with a larger one was written by a later meltpoint. Version 1 has no kinds of units."""

_KIND, _VERSION, _NOTE = "meltpoint_kind", "meltpoint_version", "meltpoint_note"
_UNITS = 100_000  # units that a layer in any file may have, however small the file
_SALAKHUTDINOV = ("vishid", "visbiases", "hidbiases")


def save(
    model: Model, path: str | os.PathLike[str], *, dtype: DTypeLike = np.float64, note: str = ""
) -> None:
    """Write a model to a .npz file, whole or not at all; the same model always gives the same bytes.

    With dtype float32 or float16 the file is smaller, and what it holds is the model: `load` returns exactly
    the rounded parameters. The note is kept in the file; `read_note` returns it.

    >>> import tempfile
    >>> from meltpoint.models.rbm import RBM
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(RBM([[0.5], [2.0]], [0, 0], [1]), f"{folder}/model.npz", note="made by hand")
    ...     load(f"{folder}/model.npz"), read_note(f"{folder}/model.npz")
    (RBM 2-1, 'made by hand')
    """
    if Path(path).suffix.lower() != ".npz":
        raise InputError(
            found=f"{os.fspath(path)!r} as the name of a model file",
            expected="a name that ends in .npz",
            remedy="add .npz to it",
        )
    if "\0" in note:
        raise InputError(found="a zero byte in the note", expected="text", remedy="leave it out")
    kind, parameters = to_arrays(model)
    version = 2 if ":" in kind else 1  # a file that an earlier meltpoint can read says so
    entries: ParameterArrays = {_KIND: np.array(kind, "<U"), _VERSION: np.array(version, "<i8")}
    if note:
        entries[_NOTE] = np.array(note, "<U")
    entries |= _rounded(parameters, dtype)
    with atomic_write(path) as file:
        npz.write_npz(file, entries)


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a .npz file written by `save`, or in a .mat file with vishid, visbiases and hidbiases.

    >>> load("mnist.png")
    Traceback (most recent call last):
    meltpoint.errors.InputError: found no file 'mnist.png', expected an existing file: check the path
    """
    file = Path(path)
    if _is_mat(file):
        return _load_mat(file)
    kind, names = _read_header(file)
    wanted = names_of(kind, names)
    _require(wanted, names, file)
    unknown = sorted(names - set(wanted) - {_KIND, _VERSION, _NOTE})
    if unknown:
        raise InputError(
            found=f"{', '.join(unknown)} in {file}",
            expected=f"nothing but the parameters of one {kind}",
            remedy="save the model again with meltpoint.save",
        )
    return _build(kind, npz.read_entries(file, wanted), file)


def read_note(path: str | os.PathLike[str]) -> str:
    """The note in a model file, empty if it has none.

    >>> import tempfile
    >>> from meltpoint.models.rbm import RBM
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(RBM([[0.5]], [0], [1]), f"{folder}/model.npz", note='{"method": "pcd"}')
    ...     read_note(f"{folder}/model.npz")
    '{"method": "pcd"}'
    """
    file = Path(path)
    if _is_mat(file) or _NOTE not in _read_header(file)[1]:
        return ""
    return _scalar(file, _NOTE, "U")


def _build(kind: str, arrays: ParameterArrays, path: Path) -> Model:
    """The model, or what its own checks say, with the file's name added."""
    longest = max(max(array.shape, default=0) for array in arrays.values())
    if longest > max(_UNITS, path.stat().st_size):
        raise InputError(
            found=f"{path}, a small file with a layer of {longest:,} units",
            expected="at least a byte for each unit, as in every trained model",
            remedy="check how it was made",
        )
    try:
        return from_arrays(kind, list(arrays.values()))
    except InputError as problem:
        raise problem.with_found(f"{problem.found} in {path}") from problem


def _rounded(arrays: ParameterArrays, dtype: DTypeLike) -> ParameterArrays:
    """Parameters as they are stored: little-endian, rows first, so that equal models give equal bytes."""
    try:
        precision = np.dtype(dtype)
    except (TypeError, ValueError):
        precision = None
    if precision not in (np.float16, np.float32, np.float64):
        raise InputError(
            found=f"dtype {dtype!r}", expected="float16, float32 or float64", remedy="choose one of them"
        )
    stored: ParameterArrays = {}
    for name, array in arrays.items():
        if array.dtype.kind == "i":  # numbers of sites and of states
            stored[name] = array.astype("<i8", order="C")
            continue
        with np.errstate(over="ignore"):
            stored[name] = array.astype(precision.newbyteorder("<"), order="C")
        if not np.isfinite(stored[name]).all():
            raise InputError(
                found=f"{name} up to {abs(array).max():.3g}",
                expected=f"at most {np.finfo(precision).max:.3g}, the range of {precision}",
                remedy="save with dtype=numpy.float64",
            )
    return stored


def _is_mat(path: Path) -> bool:
    """Whether a model file is a .mat file; if not it is a .npz file, anything else is refused."""
    format = detect(path)
    if format not in (Format.MAT, Format.NPZ):
        raise InputError(
            found=f"{path}, a {format.value}",
            expected="a model: a .npz file from meltpoint.save, or a .mat file with an RBM",
            remedy="are model and data swapped?",
        )
    return format is Format.MAT


def _read_header(path: Path) -> tuple[str, set[str]]:
    """Kind of the model in a file, and the names of all entries."""
    names = npz.entry_names(path)
    if _KIND not in names:
        raise InputError(
            found=f"{path} with the arrays {', '.join(names) or '(none)'}",
            expected=f"a model file, with an entry {_KIND}",
            remedy="write model files with meltpoint.save; are model and data swapped?",
        )
    _require([_VERSION], set(names), path)
    version = _scalar(path, _VERSION, "iu")
    if version > VERSION:
        raise InputError(
            found=f"{path}, a model file of version {version}",
            expected=f"version {VERSION}, the newest this meltpoint knows",
            remedy="upgrade meltpoint: pip install --upgrade meltpoint",
        )
    kind = _scalar(path, _KIND, "U")
    if version < 1 or not is_kind(kind):
        raise InputError(
            found=f"a {kind!r} of version {version} in {path}",
            expected=f"one of {', '.join(KINDS)} of version 1 or 2",
            remedy="save the model again with meltpoint.save",
        )
    return kind, set(names)


def _scalar(path: Path, name: str, kinds: str) -> Any:  # noqa: ANN401
    array = npz.read_entries(path, [name], kinds)[name]
    with reading(path, f"model file ({name})"):
        return array.item()


def _require(wanted: Sequence[str], present: set[str], path: Path) -> None:
    missing = [name for name in wanted if name not in present]
    if missing:
        raise InputError(
            found=f"no {', '.join(missing)} in {path}",
            expected=f"all of {', '.join(wanted)}",
            remedy="save the model again with meltpoint.save",
        )


def _load_mat(path: Path) -> Model:
    names = set(mat.variable_names(path))
    if "hidpen" in names or not names.issuperset(_SALAKHUTDINOV):
        raise InputError(
            found=f"{path} with the variables {', '.join(sorted(names)) or '(none)'}",
            expected=f"an RBM: {', '.join(_SALAKHUTDINOV)}, and no second hidden layer",
            remedy="read them with meltpoint.formats.arrays.read_array and build the model from them",
        )
    return _build("RBM", mat.read_variables(path, _SALAKHUTDINOV), path)
