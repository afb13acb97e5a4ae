"""Checks at the door: parameters and data become clean arrays, or an error that says what to do."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError

Floats: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.uint8]


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
    bad = np.count_nonzero(~np.isfinite(array))
    if bad:
        raise InputError(
            found=f"{bad} NaN or infinite value{'s' if bad > 1 else ''} in {name}",
            expected="finite numbers",
            remedy="did training diverge? lower the learning rate and train again",
        )
    array.flags.writeable = False
    return array


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


def binary(value: Any, name: str, width: int) -> Bits:  # noqa: ANN401
    """Examples (example, unit) as uint8 zeros and ones."""
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
    return to_bits(array, name)


def to_bits(array: NDArray[Any], name: str) -> Bits:
    """A uint8 array of zeros and ones with the same shape, or an error that says how to binarise."""
    if array.dtype == np.bool_:
        return array.astype(np.uint8)
    if not (np.issubdtype(array.dtype, np.number) and not np.issubdtype(array.dtype, np.complexfloating)):
        raise InputError(
            found=f"{name} of type {array.dtype}",
            expected="zeros and ones",
            remedy="convert it to numbers first",
        )
    bits = array.astype(np.uint8, copy=True) if np.issubdtype(array.dtype, np.integer) else None
    if bits is None:
        if np.isnan(array).any():
            raise InputError(
                found=f"NaN in {name}",
                expected="zeros and ones",
                remedy="drop or fill the missing values first",
            )
        bits = (array != 0).astype(np.uint8)
    if not np.array_equal(array, bits) or bits.max(initial=0) > 1:
        low, high = array.min(), array.max()
        if low >= 0:
            grey = f"{name} / 255" if high > 1 else name
            remedy = (
                f"binarise grey values first: {name} = (rng.random({name}.shape) < {grey}), with "
                "rng = np.random.default_rng(0)"
            )
        elif set(np.unique(array)) <= {-1, 1}:
            remedy = f"units here are 0 and 1, not spins: ({name} + 1) // 2, and convert the model's parameters too"
        else:
            remedy = "binarise the data first"
        raise InputError(
            found=f"{name} with values from {low:g} to {high:g}", expected="only 0 and 1", remedy=remedy
        )
    return bits
