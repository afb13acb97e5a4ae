"""What every kind of unit answers. A unit's state has probability proportional to exp(input · statistics of the state).

Chains hold *states*: whole numbers from 0 on (a Bernoulli unit's bit, a spin's sign as a bit, a Potts unit's state), or
real numbers (Gaussian units); users see *values* (0 and 1, -1 and +1). `encode` and `decode` go from one to the other,
where values enter or leave the library and nowhere else.

An input has one number where a unit has two states (its statistic is the value), q numbers where it has q (one for each
state), and two for a Gaussian unit: inputs of units are arrays (…, unit, *input_shape), states are (…, unit).

These methods are what the reference backend runs. The compiled backends draw units in `backends/numba/kernels/`, which
lists its files, and are tested against them.

Visible units in training are the same objects: log f is linear in statistics of their states, with weights and biases,
but for further parameters. Statistics are what products with weights see: bits of Bernoulli units and of spins, one-hot
states of Potts units, standardised Gaussian values.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.kernels.bit_products import State

if TYPE_CHECKING:
    from meltpoint.layers.two_state import TwoState

Floats: TypeAlias = NDArray[np.float64]
States: TypeAlias = NDArray[Any]
"""States of units, of the units' `dtype`: one byte each, but for Gaussian units."""
Means: TypeAlias = NDArray[np.floating]
Further: TypeAlias = tuple[Means, ...]
"""Parameters (unit,) that are learned besides weights and biases."""


class Unit(ABC):
    """One kind of unit. Its methods work unit by unit on arrays of any shape."""

    name: ClassVar[str]
    values_in_words: ClassVar[str]
    counts_states: ClassVar[bool] = False
    """Whether it is made with a number of states."""
    has_scale: ClassVar[bool] = False
    """Whether a visible layer of an RBM is given by means and scales in place of inputs."""
    scale: ClassVar[float] = 1.0
    offset: ClassVar[float] = 0.0
    """Where the unit is written for a bit: value = offset + scale · bit."""

    n_states: int | None
    """Number of states; None if they are real numbers."""
    dtype: np.dtype[Any] = np.dtype(np.uint8)
    """What states are kept in."""
    input_shape: tuple[int, ...] = ()
    """Axes of one unit's input."""
    n_coupled: int = 1
    """How many numbers of a unit weights multiply: its value, or one for each state."""

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.n_states == other.n_states  # pyright: ignore[reportAttributeAccessIssue]

    def __hash__(self) -> int:
        return hash((type(self), self.n_states))

    @property
    def is_discrete(self) -> bool:
        """Whether probabilities are those of states, at most 1, and not densities."""
        return self.n_states is not None

    @property
    def bit(self) -> "TwoState | None":
        """The unit itself if it has two states, which can be written for a bit."""
        return None

    def coupled(self, states: States) -> NDArray[Any]:
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

    def flat_bias(self, size: int) -> Floats:
        """Inputs (unit, *input_shape) of `size` units under which all states are equally probable."""
        return np.zeros((size, *self.input_shape))

    @abstractmethod
    def encode(self, values: NDArray[Any], name: str) -> States:
        """States of data values, the same shape; an InputError where `name` has other values."""

    def decode(self, states: States) -> NDArray[Any]:
        """Values of states, the same shape: here the states."""
        return states

    @abstractmethod
    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """Log of the sum (integral) over states of exp(input · statistics), one for each unit."""

    @abstractmethod
    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        """Expected value; the probability of each state where values are only names."""

    @abstractmethod
    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> States:
        """States drawn with uniforms in (0, 1], one for each unit."""

    @abstractmethod
    def log_weight(self, states: States, inputs: NDArray[np.floating]) -> Floats:
        """Log unnormalised probability of states: input · statistics, one for each unit."""

    @abstractmethod
    def bias_from_sample(self, sample: NDArray[Any], smoothing: float) -> Floats:
        """Inputs (unit, *input_shape) of independent units that are distributed as in a sample (example, unit).

        The sample holds states or, where there are few states, their probabilities (which have less noise): those of
        state 1 (example, unit) for two states, those of all (example, unit, state) for more. `smoothing` keeps inputs
        finite: that many examples are added in every state.
        """

    # Training: what `fitted` units answer.

    takes_rates: ClassVar[bool] = False
    """Whether rates in [0, 1] may stand for the states, which are then drawn anew in every epoch."""
    largest: ClassVar[float] = 1.0
    """The largest statistic."""
    n_further: ClassVar[int] = 0
    """Further parameters of each unit, which are 0 at first."""
    rate_share: ClassVar[float] = 1.0
    """The share of the default learning rate that suits these units."""

    def fitted(self, data: NDArray[Any], name: str) -> "Unit":
        """The visible units to train on data (example, unit), with what they keep of it."""
        raise InputError(
            found=f"{self!r} units", expected="units that can be trained", remedy="choose another kind"
        )

    @classmethod
    def refitted(cls, *kept: NDArray[Any]) -> "Unit":
        """What was `fitted`, from the arrays that it `kept`."""
        return cls(*kept)

    @property
    def kept(self) -> tuple[NDArray[Any], ...]:
        """What fitting took from the data: single numbers, or one for each unit."""
        return ()

    @property
    def initial_weight(self) -> float:
        """Standard deviation of the first weights."""
        return 0.01

    def statistics(self, states: States) -> State:
        """Statistics (example, statistic) of states (example, unit)."""
        return states

    def initial_bias(self, states: States) -> Floats:
        """Biases (statistic,) that give every unit its own distribution in the data, smoothed by one example."""
        return self.scale * self.bias_from_sample(states, 1.0).ravel()

    def activate_(self, inputs: Means, bias: Means, further: Further) -> None:
        """Replace inputs (example, statistic) by means."""
        raise NotImplementedError

    def draw_statistics(self, means: Means, further: Further, stream: NDArray[np.uint32]) -> State:
        """Statistics (example, statistic) drawn with these means."""
        raise NotImplementedError

    def further_slopes(self, data: State, model: State, further: Further) -> Further:
        """Gradient of the further parameters, from the statistics in both phases."""
        return ()

    def log_weight_of_statistics(self, statistics: State, bias: Means, further: Further) -> Means:
        """The biases' part (example,) of log f."""
        return np.matmul(statistics, bias)

    def rbm_arguments(
        self, weights: Means, bias: Means, hidden_bias: Means, *further: Means
    ) -> dict[str, Any]:
        """Arguments of an RBM of values with the distribution that these parameters of statistics have."""
        return {"weights": weights, "visible_bias": bias, "hidden_bias": hidden_bias, "visible": self.name}


def check_real(array: NDArray[Any], name: str, expected: str) -> None:
    """Refuse what is not real numbers, and NaN."""
    if array.dtype.kind not in "iuf":
        raise InputError(
            found=f"{name} of type {array.dtype}", expected=expected, remedy="convert it to numbers first"
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InputError(
            found=f"NaN in {name}", expected=expected, remedy="drop or fill the missing values first"
        )
