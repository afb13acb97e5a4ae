"""Bernoulli units: 0 or 1."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.layers.unit import Bits, Floats, TwoState
from meltpoint.statistics.elementary import expit, log, softplus


class Bernoulli(TwoState):
    """A unit that is 0 or 1; its state is its value."""

    name, values_in_words = "bernoulli", "0 and 1"
    values = (0.0, 1.0)
    scale, offset = 1.0, 0.0
    takes_rates = True

    def encode(self, values: NDArray[Any], name: str) -> Bits:
        """The same as uint8 zeros and ones, or an error that says how to binarise."""
        return check_bits(values, name)

    def decode(self, states: Bits) -> Bits:
        return states

    def coupled(self, states: Bits) -> Bits:
        return states

    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """softplus(input)."""
        return softplus(inputs)

    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        """Probability of being on."""
        return expit(inputs)

    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> Bits:
        """On where the uniform is at most the probability of being on."""
        return (uniforms <= expit(inputs)).astype(np.uint8)

    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        """Log odds of the smoothed counts."""
        return log(counts[1] + smoothing) - log(counts[0] + smoothing)


def check_bits(array: NDArray[Any], name: str) -> Bits:
    """A uint8 array of zeros and ones with the same shape, or an error that says how to binarise."""
    if array.dtype == np.bool_:
        return array.astype(np.uint8)
    check_real(array, name, "zeros and ones")
    bits = array.astype(np.uint8, copy=True) if np.issubdtype(array.dtype, np.integer) else None
    if bits is None:
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
            remedy = (
                f"these are spins: give the model spin units, or take ({name} + 1) // 2 if its "
                "parameters are for 0 and 1"
            )
        else:
            remedy = "binarise the data first"
        raise InputError(
            found=f"{name} with values from {low:g} to {high:g}", expected="only 0 and 1", remedy=remedy
        )
    return bits


def check_real(array: NDArray[Any], name: str, expected: str) -> None:
    """Refuse what is not real numbers, and NaN."""
    if not (np.issubdtype(array.dtype, np.number) and not np.issubdtype(array.dtype, np.complexfloating)):
        raise InputError(
            found=f"{name} of type {array.dtype}",
            expected=expected,
            remedy="convert it to numbers first",
        )
    if np.issubdtype(array.dtype, np.floating) and np.isnan(array).any():
        raise InputError(
            found=f"NaN in {name}",
            expected=expected,
            remedy="drop or fill the missing values first",
        )
