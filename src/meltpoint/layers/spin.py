"""Spins: -1 or +1."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.layers.bernoulli import check_real
from meltpoint.layers.unit import Bits, Floats, TwoState
from meltpoint.statistics.elementary import expit, log, log_add_exp, tanh


class Spin(TwoState):
    """A unit that is -1 (state 0) or +1 (state 1): value = 2 · bit - 1, so its input counts twice for the bit."""

    name, values_in_words = "spin", "-1 and +1"
    values = (-1.0, 1.0)
    scale, offset = 2.0, -1.0

    def encode(self, values: NDArray[Any], name: str) -> Bits:
        """1 where the value is +1 and 0 where it is -1."""
        check_real(values, name, "-1 and +1")
        if not (np.abs(values) == 1).all():
            low, high = values.min(), values.max()
            zeros_and_ones = set(np.unique(values)) <= {0, 1}
            raise InputError(
                found=f"{name} with values from {low:g} to {high:g}",
                expected="only -1 and +1, as the model has spin units",
                remedy=f"convert zeros and ones to spins: 2 * {name} - 1"
                if zeros_and_ones
                else "take signs first",
            )
        return (values == 1).astype(np.uint8)

    def decode(self, states: Bits) -> NDArray[np.int8]:
        return (2 * states.astype(np.int8) - 1).astype(np.int8)

    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """log(2 cosh(input))."""
        return log_add_exp(inputs, -inputs)

    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        """tanh(input)."""
        return tanh(inputs)

    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> Bits:
        """+1 where the uniform is at most its probability."""
        return (uniforms <= expit(2 * inputs)).astype(np.uint8)

    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        """Half the log odds of the smoothed counts."""
        return (log(counts[1] + smoothing) - log(counts[0] + smoothing)) / 2
