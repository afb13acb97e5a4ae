"""Potts units: one of q states, which are numbered and have no order."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.kernels.draws import draw_states
from meltpoint.kernels.sigmoid import softmax_
from meltpoint.layers.bernoulli import check_real
from meltpoint.layers.trainable import Further, Means, Trainable
from meltpoint.layers.unit import Bits, Floats, Unit
from meltpoint.statistics.elementary import exp, log, softmax
from meltpoint.statistics.log_space import log_sum_exp

_MOST_TRAINED = 256


@dataclass(frozen=True, repr=False)
class Potts(Unit, Trainable):
    """A unit of q states 0 … q - 1, each with an input of its own: inputs are (…, unit, state).

    >>> Potts(3).log_partition(np.zeros((2, 3))).round(4)
    array([1.0986, 1.0986])
    """

    q: int

    name: ClassVar[str] = "potts"
    values_in_words: ClassVar[str] = "numbers from 0 on"
    counts_states: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.q, bool) or not isinstance(self.q, int | np.integer) or self.q < 1:
            raise InputError(
                found=f"Potts units of {self.q!r} states",
                expected="a whole number of states from 1 on",
                remedy="21 for the amino acids and the gap",
            )

    def __repr__(self) -> str:
        return f"potts({self.q})"

    @property
    def n_states(self) -> int:
        return self.q

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.min_scalar_type(self.q - 1)

    @property
    def input_shape(self) -> tuple[int]:
        return (self.q,)

    def encode(self, values: NDArray[Any], name: str) -> Bits:
        """The states, which are the values."""
        expected = f"whole numbers from 0 to {self.q - 1}, the states of the model's Potts units"
        if values.dtype == np.bool_:
            values = values.astype(np.uint8)
        if values.dtype.kind in "USO":
            raise InputError(
                found=f"{name} of type {values.dtype}",
                expected=expected,
                remedy="number the letters of the alphabet from 0 on, in the order of the model's states",
            )
        check_real(values, name, expected)
        low, high = values.min(initial=0), values.max(initial=0)
        if low < 0 or high >= self.q or (values.dtype.kind == "f" and not (values == np.floor(values)).all()):
            low = values.min()
            if low == 1 and high == self.q:
                remedy = f"states count from 0: {name} - 1"
            elif values.dtype.kind == "f" and not (values == np.floor(values)).all():
                remedy = "states have no values between them; are model and data swapped?"
            else:
                remedy = "does the data have the model's alphabet, gaps and unknown letters included?"
            raise InputError(
                found=f"{name} with values from {low:g} to {high:g}", expected=expected, remedy=remedy
            )
        return values.astype(self.dtype)

    def decode(self, states: Bits) -> Bits:
        return states

    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """Log of the sum of exp over the states."""
        return np.asarray(log_sum_exp(inputs, axis=-1))

    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        """Probability (…, unit, state) of each state."""
        return softmax(inputs, axis=-1)

    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> Bits:
        """The first state up to which the probabilities add up to the uniform."""
        weights = exp(inputs - inputs.max(axis=-1, keepdims=True))
        reached = np.cumsum(weights, axis=-1)
        # Compared with a part of the same sum, so that rounding never leads beyond the last state that has a weight.
        return (reached < uniforms[..., np.newaxis] * reached[..., -1:]).sum(axis=-1).astype(self.dtype)

    @property
    def n_coupled(self) -> int:
        return self.q

    def coupled(self, states: Bits) -> NDArray[np.uint8]:
        one_hot = states[..., np.newaxis] == np.arange(self.q, dtype=states.dtype)
        return one_hot.reshape(*states.shape[:-1], -1).astype(np.uint8)

    def log_weight(self, states: Bits, inputs: NDArray[np.floating]) -> Floats:
        """The input of the state."""
        chosen = np.broadcast_to(inputs, (*states.shape, self.q))
        index = states.astype(np.intp)[..., np.newaxis]
        return np.asarray(np.take_along_axis(chosen, index, axis=-1)[..., 0], np.float64)

    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        """Log probabilities (unit, state) of counts (state, unit), each of them with `smoothing` added."""
        smoothed = np.asarray(counts, np.float64).T + smoothing
        return log(smoothed) - log(smoothed.sum(axis=1, keepdims=True))

    def bias_from_sample(self, sample: NDArray[Any], smoothing: float) -> Floats:
        """Biases from smoothed counts of states (example, unit) or from probabilities (example, unit, state)."""
        if sample.ndim == 2:
            counts = np.stack([np.count_nonzero(sample == state, axis=0) for state in range(self.q)])
        else:
            counts = sample.sum(axis=0, dtype=np.float64).T
        return self.bias_from_counts(counts, smoothing)

    def statistics(self, states: Bits) -> NDArray[np.uint8]:
        return self.coupled(states)

    def initial_bias(self, states: Bits) -> Floats:
        """Log rates of the states, each smoothed by one example."""
        return self.bias_from_sample(states, 1.0).ravel()

    def fitted(self, data: NDArray[Any], name: str) -> Trainable:
        """The unit, if its states are not too many to have been meant."""
        if self.q > _MOST_TRAINED:
            raise InputError(
                found=f"states up to {self.q - 1} in {name}",
                expected=f"at most {_MOST_TRAINED} states",
                remedy="Potts units have no order: for numbers say visible='gaussian'",
            )
        return self

    @property
    def kept(self) -> tuple[NDArray[Any], ...]:
        return (np.array(self.q),)

    @classmethod
    def refitted(cls, *kept: NDArray[Any]) -> Trainable:
        return cls(*map(int, kept))

    def activate_(self, inputs: Means, bias: Means, further: Further) -> None:
        softmax_(inputs, bias, self.q)

    def draw_statistics(self, means: Means, further: Further, stream: NDArray[np.uint32]) -> Bits:
        one_hot = np.zeros(means.shape, np.uint8)
        draw_states(means, stream, one_hot, self.q)
        return one_hot

    def rbm_arguments(
        self, weights: Means, bias: Means, hidden_bias: Means, *further: Means
    ) -> dict[str, Any]:
        """Weights (site, state, hidden) and biases (site, state)."""
        weights = weights.reshape(-1, self.q, weights.shape[1])
        return super().rbm_arguments(weights, bias.reshape(-1, self.q), hidden_bias)
