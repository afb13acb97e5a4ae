"""What every kind of unit answers. A unit with input t has probability proportional to exp(t · value).

Chains hold *states*, small whole numbers from 0 on (a Bernoulli unit's bit, a spin's sign as a bit); users see *values*
(0 and 1, -1 and +1). `encode` and `decode` go from one to the other, at the door and nowhere else.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bits: TypeAlias = NDArray[np.uint8]
"""States of units, one byte each."""


class Unit(ABC):
    """One kind of unit. Its methods work unit by unit on arrays of any shape."""

    name: ClassVar[str]
    values: ClassVar[tuple[float, ...]]
    """The value of each state."""
    scale: ClassVar[float]
    offset: ClassVar[float]
    """Of the affine map to a Bernoulli unit: value = offset + scale · bit."""

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.values)

    @abstractmethod
    def encode(self, values: NDArray[Any], name: str) -> Bits:
        """States of data values, the same shape; an InputError where `name` has other values."""

    @abstractmethod
    def decode(self, states: Bits) -> NDArray[Any]:
        """Values of states, the same shape."""

    @abstractmethod
    def log_partition(self, inputs: NDArray[np.floating]) -> Floats:
        """Log of the sum over states of exp(input · value)."""

    @abstractmethod
    def mean(self, inputs: NDArray[np.floating]) -> Floats:
        """Expected value."""

    @abstractmethod
    def draw(self, inputs: NDArray[np.floating], uniforms: NDArray[np.floating]) -> Bits:
        """States drawn with uniforms in (0, 1]."""

    @abstractmethod
    def bias_from_counts(self, counts: Floats, smoothing: float) -> Floats:
        """Inputs (unit,) of independent units that are in each state as often as counts (state, unit) say.

        `smoothing` is added to every count, so that a state that was never seen keeps a finite input.
        """

    def log_weight(self, states: Bits, inputs: NDArray[np.floating]) -> Floats:
        """Log unnormalised probability of states: input · value."""
        return np.asarray(self.decode(states) * inputs, np.float64)
