"""What every kind of unit answers. A unit's state has probability proportional to exp(input · statistics of the state).

Chains hold *states*: whole numbers from 0 on (a Bernoulli unit's bit, a spin's sign as a bit, a Potts unit's state), or
real numbers (Gaussian units); users see *values* (0 and 1, -1 and +1). `encode` and `decode` go from one to the other,
where values enter or leave the library and nowhere else.

An input has one number where a unit has two states (its statistic is the value), q numbers where it has q (one for each
state), and two for a Gaussian unit: inputs of units are arrays (…, unit, *input_shape), states are (…, unit).

These methods are what the reference backend runs. The compiled backends draw units in `backends/numba/kernels/`, which
lists its files, and are tested against them.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.draws import draw_bits
from meltpoint.kernels.sigmoid import sigmoid_
from meltpoint.layers.trainable import Further, Means, Trainable

Floats: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[Any]
"""States of units, of the units' `dtype`: one byte each, but for Gaussian units."""


class Unit(ABC):
    """One kind of unit. Its methods work unit by unit on arrays of any shape."""

    name: ClassVar[str]
    values_in_words: ClassVar[str]
    counts_states: ClassVar[bool] = False
    """Whether it is made with a number of states."""

    has_scale: ClassVar[bool] = False
    """Whether a visible layer of an RBM is given by means and scales in place of inputs."""

    @property
    @abstractmethod
    def n_states(self) -> int | None:
        """Number of states; None if they are real numbers."""

    @property
    def is_discrete(self) -> bool:
        """Whether probabilities are those of states, at most 1, and not densities."""
        return self.n_states is not None

    @property
    def bit(self) -> "TwoState | None":
        """The unit itself if it has two states, which can be written for a bit."""
        return None

    @property
    def n_coupled(self) -> int:
        """How many numbers of a unit weights multiply: its value, or one for each state."""
        return 1

    def coupled(self, states: Bits) -> NDArray[Any]:
        """The numbers that weights multiply (…, unit · n_coupled)."""
        return self.decode(states).astype(np.float64)

    def with_field(self, bias: Floats, field: Floats) -> Floats:
        """Inputs (chain, unit, *input_shape) of units with these biases, when weights add a field (chain, number)."""
        if not self.input_shape:
            return bias + field
        inputs = np.empty((len(field), *bias.shape))
        inputs[:] = bias
        inputs[:, :, : self.n_coupled] += field.reshape(len(field), len(bias), self.n_coupled)
        return inputs

    @property
    def dtype(self) -> np.dtype[Any]:
        """What states are kept in."""
        return np.dtype(np.uint8)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Axes of one unit's input."""
        return ()

    def flat_bias(self, size: int) -> Floats:
        """Inputs (unit, *input_shape) of so many units under which all states are equally probable."""
        return np.zeros((size, *self.input_shape))

    @abstractmethod
    def encode(self, values: NDArray[Any], name: str) -> Bits:
        """States of data values, the same shape; an InputError where `name` has other values."""

    @abstractmethod
    def decode(self, states: Bits) -> NDArray[Any]:
        """Values of states, the same shape."""

    @abstractmethod
    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """Log of the sum (integral) over states of exp(input · statistics), one for each unit."""

    @abstractmethod
    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        """Expected value; the probability of each state where values are only names."""

    @abstractmethod
    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> Bits:
        """States drawn with uniforms in (0, 1], one for each unit."""

    @abstractmethod
    def log_weight(self, states: Bits, inputs: NDArray[np.floating]) -> Floats:
        """Log unnormalised probability of states: input · statistics, one for each unit."""

    @abstractmethod
    def bias_from_sample(self, sample: NDArray[Any], smoothing: float) -> Floats:
        """Inputs (unit, *input_shape) of independent units that are distributed as in a sample (example, unit).

        The sample holds states or, where there are few states, their probabilities (which have less noise): those of
        state 1 (example, unit) for two states, those of all (example, unit, state) for more. `smoothing` is the weight
        of what keeps inputs finite: so many examples in every state.
        """

    def fitted(self, data: NDArray[Any], name: str) -> Trainable | None:
        """What is trained where visible units are of this kind, by training data (example, unit); None: nothing is."""
        return None

    @classmethod
    def refitted(cls, *kept: NDArray[Any]) -> Trainable | None:
        """What was `fitted`, from the arrays that it `kept`."""
        return None


class TwoState(Unit, Trainable):
    """A unit of two states, written for its bit: value = offset + scale · bit."""

    values: ClassVar[tuple[float, float]]
    """The value of each state."""
    scale: ClassVar[float]
    offset: ClassVar[float]

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @property
    def n_states(self) -> int:
        return 2

    @property
    def bit(self) -> "TwoState":
        return self

    @abstractmethod
    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        """Inputs (unit,) of independent units that are in each state as often as counts (state, unit) say.

        `smoothing` is added to every count, so that a state that was never seen keeps a finite input.
        """

    def log_weight(self, states: Bits, inputs: NDArray[np.floating]) -> Floats:
        """Input · value."""
        return np.asarray(self.decode(states) * inputs, np.float64)

    def bias_from_sample(self, sample: NDArray[Any], smoothing: float) -> Floats:
        """Biases from the smoothed counts of both states."""
        on = sample.sum(axis=0, dtype=np.float64)
        return self.bias_from_counts(np.stack([len(sample) - on, on]), smoothing)

    def fitted(self, data: NDArray[Any], name: str) -> Trainable:
        return self

    @classmethod
    def refitted(cls, *kept: NDArray[Any]) -> Trainable:
        return cls(*kept)

    def initial_bias(self, states: Bits) -> Floats:
        """Log odds: training has bits."""
        return self.scale * self.bias_from_sample(states, 1.0)

    def activate_(self, inputs: Means, bias: Means, further: Further) -> None:
        sigmoid_(inputs, bias)

    def draw_statistics(self, means: Means, further: Further, stream: NDArray[np.uint32]) -> Bits:
        bits = np.empty(means.shape, np.uint8)
        draw_bits(means, stream, bits)
        return bits

    def rbm_arguments(
        self, weights: Means, bias: Means, hidden_bias: Means, *further: Means
    ) -> dict[str, Any]:
        """The same distribution written for values."""
        constant = self.offset / self.scale * weights.sum(axis=0, dtype=np.float64)
        return super().rbm_arguments(weights / self.scale, bias / self.scale, hidden_bias - constant)
