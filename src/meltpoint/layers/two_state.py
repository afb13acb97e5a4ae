"""Units of two states: Bernoulli units, 0 or 1, and spins, -1 or +1."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.kernels.draws import draw_bits
from meltpoint.kernels.sigmoid import sigmoid_
from meltpoint.layers.unit import Floats, Further, Means, States, Unit, check_real
from meltpoint.statistics.elementary import expit, log, log_add_exp, softplus, tanh


class TwoState(Unit):
    """A unit of two states, written for its bit: value = offset + scale · bit. Training has bits."""

    n_states = 2
    values: ClassVar[tuple[float, float]]
    """The value of each state."""

    @property
    def bit(self) -> "TwoState":
        return self

    @abstractmethod
    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        """Inputs (unit,) of independent units that are in each state as often as counts (state, unit) say.

        `smoothing` is added to every count, so that a state that was never seen keeps a finite input.
        """

    def log_weight(self, states: States, inputs: NDArray[np.floating]) -> Floats:
        return np.asarray(self.decode(states) * inputs, np.float64)

    def bias_from_sample(self, sample: NDArray[Any], smoothing: float) -> Floats:
        on = sample.sum(axis=0, dtype=np.float64)
        return self.bias_from_counts(np.stack([len(sample) - on, on]), smoothing)

    def fitted(self, data: NDArray[Any], name: str) -> "TwoState":
        return self

    def activate_(self, inputs: Means, bias: Means, further: Further) -> None:
        sigmoid_(inputs, bias)

    def draw_statistics(self, means: Means, further: Further, stream: NDArray[np.uint32]) -> States:
        bits = np.empty(means.shape, np.uint8)
        draw_bits(means, stream, bits)
        return bits

    def rbm_arguments(
        self, weights: Means, bias: Means, hidden_bias: Means, *further: Means
    ) -> dict[str, Any]:
        constant = self.offset / self.scale * weights.sum(axis=0, dtype=np.float64)
        return super().rbm_arguments(weights / self.scale, bias / self.scale, hidden_bias - constant)


class Bernoulli(TwoState):
    """A unit that is 0 or 1; its state is its value."""

    name, values_in_words = "bernoulli", "0 and 1"
    values = (0.0, 1.0)
    takes_rates = True

    def encode(self, values: NDArray[Any], name: str) -> States:
        return check_bits(values, name)

    def coupled(self, states: States) -> States:
        return states

    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        return softplus(inputs)

    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        return expit(inputs)

    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> States:
        return (uniforms <= expit(inputs)).astype(np.uint8)

    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        return log(counts[1] + smoothing) - log(counts[0] + smoothing)


class Spin(TwoState):
    """A unit that is -1 (state 0) or +1 (state 1): value = 2 · bit - 1, so its input counts twice for the bit."""

    name, values_in_words = "spin", "-1 and +1"
    values = (-1.0, 1.0)
    scale, offset = 2.0, -1.0

    def encode(self, values: NDArray[Any], name: str) -> States:
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

    def decode(self, states: States) -> NDArray[np.int8]:
        return (2 * states.astype(np.int8) - 1).astype(np.int8)

    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """log(2 cosh(input))."""
        return log_add_exp(inputs, -inputs)

    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        return tanh(inputs)

    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> States:
        return (uniforms <= expit(2 * inputs)).astype(np.uint8)

    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        return (log(counts[1] + smoothing) - log(counts[0] + smoothing)) / 2


def check_bits(array: NDArray[Any], name: str) -> States:
    """A uint8 array of zeros and ones with the same shape, or an error that says how to binarise."""
    if array.dtype == np.bool_:
        return array.astype(np.uint8)
    check_real(array, name, "zeros and ones")
    bits = array.astype(np.uint8) if array.dtype.kind in "iu" else (array != 0).astype(np.uint8)
    if np.array_equal(array, bits) and bits.max(initial=0) <= 1:
        return bits
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
