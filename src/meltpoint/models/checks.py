"""Checks at the door: parameters and data become clean arrays, or an error that says what to do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError
from meltpoint.units import BERNOULLI, Unit
from meltpoint.units.bernoulli import to_bits
from meltpoint.units.unit import Bits, Floats

__all__ = [
    "Bits",
    "Floats",
    "bias",
    "binary",
    "examples",
    "finite",
    "number",
    "pairs",
    "parameter",
    "to_bits",
    "unit_names",
    "whole_numbers",
]


def parameter(value: ArrayLike, name: str, ndim: int) -> Floats:
    """A read-only float64 copy of a parameter array with `ndim` axes and finite entries."""
    try:
        if np.iscomplexobj(value):  # NumPy would drop the imaginary parts
            raise TypeError("they are complex")
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as problem:
        raise InputError(
            found=f"{name} that cannot be read as an array of real numbers",
            expected="real numbers",
            remedy=f"convert it first ({problem})",
        ) from problem
    if array.ndim != ndim or 0 in array.shape:
        raise InputError(
            found=f"{name} of shape {array.shape}",
            expected=f"{ndim} {'axis' if ndim == 1 else 'axes'}, none of them empty",
            remedy="weights are (visible, hidden) matrices, biases are vectors",
        )
    finite(array, name)
    array.flags.writeable = False
    return array


def finite(array: Floats, name: str) -> None:
    """Refuse NaN and infinite values."""
    bad = np.count_nonzero(~np.isfinite(array))
    if bad:
        raise InputError(
            found=f"{bad} NaN or infinite value{'s' if bad > 1 else ''} in {name}",
            expected="finite numbers",
            remedy="did training diverge? lower the learning rate and train again",
        )


def number(value: Any, name: str) -> float:  # noqa: ANN401
    """One finite real number."""
    return float(parameter(np.asarray(value).reshape(-1), name, 1)[0])


def whole_numbers(value: Any, name: str) -> NDArray[np.int64]:  # noqa: ANN401
    """A vector of whole numbers from 0 on, which may be empty."""
    array = np.asarray(value)
    whole = array.ndim == 1 and array.dtype.kind in "iuf" and (array == np.floor(array)).all()
    if not whole or (array.size and not (array.min() >= 0 and array.max() < 2**53)):
        raise InputError(
            found=f"{name} of shape {array.shape} and type {array.dtype}",
            expected="a vector of whole numbers from 0 on",
            remedy="number sites from 0 on",
        )
    return array.astype(np.int64)


def pairs(value: Any, n_sites: int, count: int) -> NDArray[np.int64]:  # noqa: ANN401
    """Coupled pairs (pair, 2) of different sites below n_sites, no pair twice."""
    array = np.asarray(value)
    if array.ndim != 2 or array.shape != (count, 2):
        raise InputError(
            found=f"pairs of shape {array.shape} for {count} couplings",
            expected="(pair, 2), one for each coupling",
            remedy="save the model again with meltpoint.save",
        )
    sites = whole_numbers(array.reshape(-1), "pairs").reshape(-1, 2)
    ordered = np.sort(sites, axis=1)
    if sites.size and (sites.max() >= n_sites or (ordered[:, 0] == ordered[:, 1]).any()):
        raise InputError(
            found="a pair of a site with itself, or beyond the last site",
            expected=f"two different sites from 0 to {n_sites - 1}",
            remedy="number sites from 0 on",
        )
    if len(np.unique(ordered[:, 0] * n_sites + ordered[:, 1])) < count:
        raise InputError(
            found="a pair of sites that is given twice",
            expected="each pair once, as (i, j) or as (j, i)",
            remedy="add its two couplings up, the one of (j, i) transposed, if both are meant",
        )
    return sites


def bias(value: ArrayLike, name: str, size: int, of: str) -> Floats:
    """A bias vector of the given length; a row or column matrix is accepted as a vector."""
    array = np.asarray(value)
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    array = parameter(array, name, 1)
    if array.size != size:
        raise InputError(
            found=f"{name} of length {array.size}",
            expected=f"{size}, one for each {of}",
            remedy="are the weights transposed? they are (visible, hidden)",
        )
    return array


def unit_names(units: Sequence[str | Unit], count: int) -> list[str | Unit]:
    """The kinds of units of so many layers: as given, or Bernoulli."""
    if units and len(units) != count:
        raise InputError(
            found=f"{len(units)} kinds of units",
            expected=f"{count}, one for each layer",
            remedy="give one kind for all layers, or a list with one for each",
        )
    return list(units) or ["bernoulli"] * count


def examples(value: Any, name: str, width: int, unit: Unit) -> Bits:  # noqa: ANN401
    """States (example, unit) of examples whose values are those of a kind of unit."""
    array = np.asarray(value)
    if array.ndim == 1 and array.size == width:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise InputError(
            found=f"{name} of shape {array.shape}",
            expected=f"(examples, {width})",
            remedy=f"flatten each example: {name}.reshape(len({name}), -1)",
        )
    if array.shape[0] == 0:
        raise InputError(
            found=f"{name} without a single example",
            expected="at least one row",
            remedy="check how the file was cut or filtered",
        )
    if array.shape[1] != width:
        extra = array.shape[1] - width
        remedy = "is the label column still in?" if extra == 1 else "do model and data belong together?"
        raise InputError(
            found=f"{name} with {array.shape[1]} columns",
            expected=f"{width}, the model's number of visible units",
            remedy=remedy,
        )
    return unit.encode(array, name)


def binary(value: Any, name: str, width: int) -> Bits:  # noqa: ANN401
    """Examples (example, unit) as uint8 zeros and ones."""
    return examples(value, name, width, BERNOULLI)
