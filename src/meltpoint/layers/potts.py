"""Potts units: one of q states, which are numbered and have no order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.kernels.draws import draw_states
from meltpoint.kernels.sigmoid import softmax_
from meltpoint.layers.unit import Floats, Further, Means, States, Unit, check_real
from meltpoint.statistics.elementary import exp, log, softmax
from meltpoint.statistics.log_space import log_sum_exp

_MOST_TRAINED = 256


class Potts(Unit):
    """A unit of q states 0 … q - 1, each with an input of its own: inputs are (…, unit, state).

    >>> Potts(3).log_partition(np.zeros((2, 3))).round(4)
    array([1.0986, 1.0986])
    """

    name, values_in_words = "potts", "numbers from 0 on"
    counts_states = True

    def __init__(self, q: int) -> None:
        if isinstance(q, bool) or not isinstance(q, int | np.integer) or q < 1:
            raise InputError(
                found=f"Potts units of {q!r} states",
                expected="a whole number of states from 1 on",
                remedy="21 for the amino acids and the gap",
            )
        self.q = self.n_states = self.n_coupled = int(q)
        self.input_shape = (self.q,)
        self.dtype = np.min_scalar_type(self.q - 1)

    def __repr__(self) -> str:
        return f"potts({self.q})"

    def encode(self, values: NDArray[Any], name: str) -> States:
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
        whole = values.dtype.kind != "f" or bool((values == np.floor(values)).all())
        if low < 0 or high >= self.q or not whole:
            low = values.min()
            if low == 1 and high == self.q:
                remedy = f"states count from 0: {name} - 1"
            elif not whole:
                remedy = "states have no values between them; are model and data swapped?"
            else:
                remedy = "does the data have the model's alphabet, gaps and unknown letters included?"
            raise InputError(
                found=f"{name} with values from {low:g} to {high:g}", expected=expected, remedy=remedy
            )
        return values.astype(self.dtype)

    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        return np.asarray(log_sum_exp(inputs, axis=-1))

    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        """Probability (…, unit, state) of each state."""
        return softmax(inputs, axis=-1)

    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> States:
        """The first state up to which the probabilities add up to the uniform."""
        weights = exp(inputs - inputs.max(axis=-1, keepdims=True))
        reached = np.cumsum(weights, axis=-1)
        # Compared with a part of the same sum, so that rounding never leads beyond the last state that has a weight.
        return (reached < uniforms[..., np.newaxis] * reached[..., -1:]).sum(axis=-1).astype(self.dtype)

    def coupled(self, states: States) -> NDArray[np.uint8]:
        one_hot = states[..., np.newaxis] == np.arange(self.q, dtype=states.dtype)
        return one_hot.reshape(*states.shape[:-1], -1).astype(np.uint8)

    def log_weight(self, states: States, inputs: NDArray[np.floating]) -> Floats:
        chosen = np.broadcast_to(inputs, (*states.shape, self.q))
        index = states.astype(np.intp)[..., np.newaxis]
        return np.asarray(np.take_along_axis(chosen, index, axis=-1)[..., 0], np.float64)

    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        """Log probabilities (unit, state) of counts (state, unit), each of them with `smoothing` added."""
        smoothed = np.asarray(counts, np.float64).T + smoothing
        return log(smoothed) - log(smoothed.sum(axis=1, keepdims=True))

    def bias_from_sample(self, sample: NDArray[Any], smoothing: float) -> Floats:
        if sample.ndim == 2:
            counts = np.stack([np.count_nonzero(sample == state, axis=0) for state in range(self.q)])
        else:
            counts = sample.sum(axis=0, dtype=np.float64).T
        return self.bias_from_counts(counts, smoothing)

    def statistics(self, states: States) -> NDArray[np.uint8]:
        return self.coupled(states)

    def fitted(self, data: NDArray[Any], name: str) -> "Potts":
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
    def refitted(cls, *kept: NDArray[Any]) -> "Potts":
        return cls(*map(int, kept))

    def activate_(self, inputs: Means, bias: Means, further: Further) -> None:
        softmax_(inputs, bias, self.q)

    def draw_statistics(self, means: Means, further: Further, stream: NDArray[np.uint32]) -> States:
        one_hot = np.zeros(means.shape, np.uint8)
        draw_states(means, stream, one_hot, self.q)
        return one_hot

    def rbm_arguments(
        self, weights: Means, bias: Means, hidden_bias: Means, *further: Means
    ) -> dict[str, Any]:
        """Weights (site, state, hidden) and biases (site, state)."""
        weights = weights.reshape(-1, self.q, weights.shape[1])
        return super().rbm_arguments(weights, bias.reshape(-1, self.q), hidden_bias)
