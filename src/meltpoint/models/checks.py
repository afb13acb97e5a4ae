"""Input checks: parameters and data as arrays of one type, or an error that says what to do."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError
from meltpoint.foreign import as_array, real_array
from meltpoint.layers import Unit
from meltpoint.layers.unit import Floats, States

LARGEST = 1e150
"""The largest number that a model may have: squares are finite."""

_ROUNDING = 1e-10  # of the largest coupling, by which the two directions of a pair may differ


def parameter(value: ArrayLike, name: str, ndim: int) -> Floats:
    """A read-only float64 copy of a parameter array with `ndim` axes and finite entries."""
    array = real_array(given_parameter(value, name), name)
    if array.ndim != ndim or 0 in array.shape:
        raise InputError(
            found=f"{name} of shape {array.shape}",
            expected=f"{ndim} {'axis' if ndim == 1 else 'axes'}, none of them empty",
            remedy="weights are (visible, hidden) matrices, biases are vectors",
        )
    finite(array, name)
    array.flags.writeable = False
    return array


def given_parameter(value: ArrayLike, name: str) -> NDArray[Any]:
    """A parameter as NumPy reads it, of any shape and type."""
    return as_array(value, name, "load it first: meltpoint.load for a model, numpy.load for an array")


def finite(
    array: Floats,
    name: str,
    expected: str = "finite numbers",
    remedy: str = "did training diverge? lower the learning rate and train again",
) -> None:
    """Refuse NaN and infinite values, and those whose sums would be infinite."""
    largest = np.abs(array).max(initial=0.0)
    if LARGEST < largest < np.inf:
        raise InputError(
            found=f"{largest} in {name}",
            expected=f"numbers of at most {LARGEST:g}: sums of larger ones overflow",
            remedy="divide them by their scale",
        )
    bad = np.count_nonzero(~np.isfinite(array))
    if bad:
        raise InputError(
            found=f"{bad} NaN or infinite value{'s' if bad > 1 else ''} in {name}",
            expected=expected,
            remedy=remedy,
        )


def number(value: Any, name: str) -> float:  # noqa: ANN401
    """One finite real number."""
    return float(bias(np.asarray(value).reshape(-1), name, 1, "model")[0])


def whole_numbers(value: Any, name: str) -> NDArray[np.int64]:  # noqa: ANN401
    """A vector of whole numbers from 0 on, which may be empty."""
    array = as_array(value, name)
    whole = array.ndim == 1 and array.dtype.kind in "iuf" and (array == np.floor(array)).all()
    if not whole or (array.size and not (array.min() >= 0 and array.max() < 2**53)):
        raise InputError(
            found=f"{name} of shape {array.shape} and type {array.dtype}",
            expected="a vector of whole numbers from 0 on",
            remedy="number sites from 0 on",
        )
    return array.astype(np.int64)


def split_arrays(array: NDArray[Any], name: str, shapes: Sequence[tuple[int, ...]]) -> list[NDArray[Any]]:
    """Arrays of these shapes, which a file has one after the other in one vector."""
    sizes = [math.prod(shape) for shape in shapes]
    if array.shape != (sum(sizes),):
        raise InputError(
            found=f"{array.size:,} {name}",
            expected=f"{sum(sizes):,}, as the other arrays say",
            remedy="save the model again with meltpoint.save",
        )
    parts = np.split(array, np.cumsum(sizes, dtype=np.int64))
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=False)]


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


def symmetric(difference: float, largest: float, one_sided: bool, other: str, transposed: str) -> None:
    """Refuse couplings J that differ from the other direction of each pair by more than rounding."""
    if difference > _ROUNDING * largest:
        raise InputError(
            found="couplings above the diagonal only" if one_sided else "couplings that are not symmetric",
            expected=f"couplings J equal in both directions, to {other}, where log f has each pair once",
            remedy=f"pass J + {transposed}"
            if one_sided
            else f"pass (J + {transposed}) / 2 if log f has half the sum over all i and j, J + {transposed} if it "
            "has all of it",
        )


def bias(value: ArrayLike, name: str, size: int, of: str, shape: tuple[int, ...] = ()) -> Floats:
    """Biases (unit, *shape) of this number of units; a row or column matrix is accepted as a vector."""
    array = given_parameter(value, name)
    if not shape and array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    array = parameter(array, name, (array.ndim or 1) if shape else 1)
    if array.shape == (size, *shape):
        return array
    if not shape:
        raise InputError(
            found=f"{name} of length {array.size}",
            expected=f"{size}, one for each {of}",
            remedy="are the weights transposed? they are (visible, hidden)",
        )
    raise InputError(
        found=f"{name} of shape {array.shape}",
        expected=f"{(size, *shape)}, (sites, states) as in the weights",
        remedy=f"reshape it: {name}.reshape(sites, states)"
        if array.size == size * math.prod(shape)
        else "do weights and biases belong together?",
    )


def unit_names(units: str | Unit | Sequence[str | Unit], count: int) -> list[str | Unit]:
    """The kinds of units of this number of layers: one for all, one for each, or (given none) Bernoulli."""
    if isinstance(units, str | Unit):
        return [units] * count
    if units and len(units) != count:
        raise InputError(
            found=f"{len(units)} kinds of units",
            expected=f"{count}, one for each layer",
            remedy="give one kind for all layers, or a list with one for each",
        )
    return list(units) or ["bernoulli"] * count


def examples(value: Any, name: str, width: int, unit: Unit) -> States:  # noqa: ANN401
    """States (example, unit) of examples whose values are those of a kind of unit."""
    array = _without_one_hot(as_array(value, name), width, unit)
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
        remedy = "do model and data belong together?"
        if array.shape[1] in (width + 1, width + 2):  # labels, an index, or both
            remedy = extra_column(array, name) or "is the label column still in?"
        raise InputError(
            found=f"{name} with {array.shape[1]} columns",
            expected=f"{width}, the model's number of visible units",
            remedy=remedy,
        )
    return unit.encode(array, name)


def extra_column(array: NDArray[Any], name: str) -> str:
    """What to do about a column of labels or row numbers at one end of a table; empty if there is none.

    >>> extra_column(np.array([[3, 0, 1], [7, 1, 1], [5, 0, 0]]), "test")
    'column 0 has values from 3 to 7, the others 0 and 1: drop the labels, test[:, 1:]'
    """
    ends = ((0, f"{name}[:, 1:]"), (array.shape[1] - 1, f"{name}[:, :-1]"))
    for k, rest in ends:
        if counts_rows(array[:, k]):
            return f"column {k} counts the rows: drop the index, {rest}"
    bits = ((array == 0) | (array == 1)).all(axis=0)
    for k, rest in ends:
        if not bits[k] and np.delete(bits, k).all():
            low, high = array[:, k].min(), array[:, k].max()
            return (
                f"column {k} has values from {low:g} to {high:g}, the others 0 and 1: drop the labels, {rest}"
            )
    return ""


def counts_rows(column: NDArray[Any]) -> bool:
    """Whether a column is 0, 1, 2, … or 1, 2, 3, …: the index of a data frame.

    >>> counts_rows(np.array([0, 1, 2])), counts_rows(np.array([0, 1]))
    (True, False)
    """
    # Two rows with 0 and 1 may well be data.
    if len(column) < 3 or column.dtype.kind not in "iuf" or column[0] not in (0, 1):
        return False
    return bool((np.diff(column.astype(np.float64)) == 1).all())


def _without_one_hot(array: NDArray[Any], width: int, unit: Unit) -> NDArray[Any]:
    """States (example, unit) of units with q > 2 states that are given as q columns each, of which one is on."""
    q = unit.n_states or 0  # real numbers have none
    if q <= 2 or array.ndim not in (2, 3) or array.dtype.kind not in "biuf" or not len(array):
        return array
    if array.shape[1:] not in ((width * q,), (width, q)):
        return array
    groups = array.reshape(len(array), width, q)
    if not (((groups == 0) | (groups == 1)).all() and (groups.sum(axis=2) == 1).all()):
        return array
    return groups.argmax(axis=2).astype(unit.dtype)
