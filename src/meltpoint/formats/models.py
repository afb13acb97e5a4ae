"""Models on disk: meltpoint's own .npz format, and the .mat files of Salakhutdinov's RBM code.

A model file is a plain .npz, so `numpy.load` opens it too. It has

    meltpoint_kind      "RBM", "DBM", "DBN", "Ising", "Potts" or "FactorGraph"; "RBM:spin,bernoulli", layer by layer,
                        if not all units are Bernoulli (version 2)
    meltpoint_version   version of this format
    meltpoint_note      free text, if one was given

and the parameters by name. Layer l counts from 1, and weights are (lower layer, upper layer):

    RBM     weights, visible_bias, hidden_bias
    DBM     visible_bias, weights_l, hidden_bias_l
    DBN     directed_l_weights, directed_l_visible_bias, directed_l_recognition_bias,
            top_weights, top_visible_bias, top_hidden_bias
    Ising   fields, pairs, couplings, hidden, constant: every coupled pair of sites (pair, 2) once
    Potts   cardinalities, fields, pairs, couplings, hidden, constant: fields and couplings one after the other
    FactorGraph   cardinalities, orders, scopes, values, hidden: scopes and tables one after the other
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.arguments import public
from meltpoint.errors import InputError
from meltpoint.formats import build, mat, npz
from meltpoint.formats.atomic import atomic_write
from meltpoint.formats.format import Format, Options, unknown_file
from meltpoint.formats.objects import from_object
from meltpoint.formats.source import Source, reading
from meltpoint.models import KINDS, Model
from meltpoint.models.model import ParameterArrays

VERSION = 2
"""Version of the format; a file with a larger one was written by a later meltpoint. Version 1 has no kinds of units."""

_KIND, _VERSION, _NOTE = "meltpoint_kind", "meltpoint_version", "meltpoint_note"
_SALAKHUTDINOV = ("vishid", "visbiases", "hidbiases")
_AGAIN = "save the model again with meltpoint.save"


@public
def save(
    model: Any,  # noqa: ANN401
    path: str | os.PathLike[str],
    *,
    dtype: DTypeLike = np.float64,
    note: str = "",
) -> None:
    """Write a model, or an object that `from_object` reads, to a .npz file, whole or not at all.

    The same model always gives the same bytes. With dtype float32 or float16 the file is smaller, and what it holds is
    the model: `load` returns exactly the rounded parameters. The note is kept in the file; `read_note` returns it.

    Parameters
    ----------
    model
        A model, or an object of another library.
    path
        A name that ends in .npz.
    dtype
        float64, float32 or float16.
    note
        Free text.

    >>> import tempfile
    >>> from meltpoint.formats.load import load
    >>> state_dict = {"W": [[0.5, 2.0]], "v_bias": [0, 0], "h_bias": [1]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(state_dict, f"{folder}/model.npz")
    ...     load(f"{folder}/model.npz")
    RBM 2-1
    """
    model = from_object(model)
    if Path(path).suffix.lower() != ".npz":
        raise InputError(
            found=f"{os.fspath(path)!r} as the name of a model file",
            expected="a name that ends in .npz",
            remedy="add .npz to it",
        )
    if "\0" in note:
        raise InputError(found="a zero byte in the note", expected="text", remedy="leave it out")
    parameters = model.arrays()
    if parameters is None:
        raise InputError(
            found=f"{model!r}, a kind of model that has no file format",
            expected="one of the library's own models",
            remedy="save its arrays with numpy.savez",
        )
    kind = model.kind_and_units
    version = 2 if ":" in kind else 1  # a file that an earlier meltpoint can read says so
    entries: ParameterArrays = {_KIND: np.array(kind, "<U"), _VERSION: np.array(version, "<i8")}
    if note:
        entries[_NOTE] = np.array(note, "<U")
    entries |= _rounded(parameters, dtype)
    with atomic_write(path) as file:
        npz.write_npz(file, entries)


def read_note(path: str | os.PathLike[str]) -> str:
    """The note in a model file, empty if it has none.

    >>> import tempfile
    >>> from meltpoint.models.rbm import RBM
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(RBM([[0.5]], [0], [1]), f"{folder}/model.npz", note='{"method": "pcd"}')
    ...     read_note(f"{folder}/model.npz")
    '{"method": "pcd"}'
    """
    with Source(Path(path)) as source, reading(source.path, "model file"):
        if mat.is_mat(source):
            return ""
        if not npz.is_zip(source):
            raise unknown_file(source, "a model file, written by meltpoint.save")
        return _scalar(source, _NOTE, "U") if _NOTE in _header(source)[1] else ""


def from_arrays(kind: str, arrays: Sequence[NDArray[Any]]) -> Model:
    """The model of this kind, which may name its units, with its parameters in the order of its array names."""
    name, _, units = kind.partition(":")
    return KINDS[name].from_arrays(arrays, units.split(",") if units else ())


def _recognises(source: Source) -> bool:
    if npz.is_zip(source):
        return _KIND in npz.array_names(source)
    names = set(source.once(mat.variables)) if mat.is_mat(source) else set()
    return "hidpen" not in names and {*_SALAKHUTDINOV} <= names


def _model(source: Source, _: Options) -> Model:
    if mat.is_mat(source):
        return _built("RBM", mat.read_variables(source, _SALAKHUTDINOV), source)
    kind, names = _header(source)
    wanted = KINDS[kind.partition(":")[0]].array_names(names)
    _require(wanted, names, source)
    if unknown := sorted(names - {*wanted, _KIND, _VERSION, _NOTE}):
        raise source.refusal(", ".join(unknown), f"nothing but the parameters of one {kind}", _AGAIN)
    return _built(kind, npz.read_arrays(source, wanted), source)


def _built(kind: str, arrays: ParameterArrays, source: Source) -> Model:
    with build.checked(source, max(max(array.shape, default=0) for array in arrays.values())):
        return from_arrays(kind, list(arrays.values()))


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


def _header(source: Source) -> tuple[str, set[str]]:
    names = npz.array_names(source)
    if _KIND not in names:
        raise InputError(
            found=f"{source.name} with the arrays {', '.join(names) or '(none)'}",
            expected=f"a model file, with an entry {_KIND}",
            remedy="write model files with meltpoint.save; are model and data swapped?",
        )
    _require([_VERSION], set(names), source)
    version = _scalar(source, _VERSION, "iu")
    if version > VERSION:
        raise InputError(
            found=f"{source.name}, a model file of version {version}",
            expected=f"version {VERSION}, the newest this meltpoint knows",
            remedy="upgrade meltpoint: pip install --upgrade meltpoint",
        )
    kind = _scalar(source, _KIND, "U")
    if version < 1 or kind.partition(":")[0] not in KINDS:
        expected = f"one of {', '.join(KINDS)} of version 1 or 2"
        raise source.refusal(f"a {kind!r} of version {version}", expected, _AGAIN)
    return kind, set(names)


def _scalar(source: Source, name: str, kinds: str) -> Any:  # noqa: ANN401
    return npz.read_arrays(source, [name], kinds)[name].item()


def _require(wanted: Sequence[str], present: set[str], source: Source) -> None:
    if missing := [name for name in wanted if name not in present]:
        raise source.refusal(f"no {', '.join(missing)}", f"all of {', '.join(wanted)}", _AGAIN)


FORMAT = Format(
    "model file of meltpoint or of Salakhutdinov's code", (".npz", ".mat"), _recognises, model=_model
)
