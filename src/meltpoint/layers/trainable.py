"""What training asks of visible units, besides what every kind of unit answers."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.bit_products import State

Means: TypeAlias = NDArray[np.floating]
Further: TypeAlias = tuple[Means, ...]
"""Parameters (unit,) that are learned besides weights and biases."""


class Trainable(ABC):
    """Units whose log f is linear in statistics of their states, with weights and biases, but for further parameters.

    Statistics are what products with weights see in training: bits of Bernoulli units and of spins, one-hot states of
    Potts units, standardised Gaussian values.
    """

    name: ClassVar[str]

    takes_rates: ClassVar[bool] = False
    """Whether rates in [0, 1] may stand for the states, which are then drawn anew in every epoch."""
    largest: ClassVar[float] = 1.0
    """The largest statistic."""
    n_further: ClassVar[int] = 0
    """Further parameters of each unit, which are 0 at first."""
    rate_share: ClassVar[float] = 1.0
    """The share of the default learning rate that suits these units."""

    @property
    def kept(self) -> tuple[NDArray[Any], ...]:
        """What data said of the units: single numbers, or one for each unit."""
        return ()

    @property
    def initial_weight(self) -> float:
        """Standard deviation of the first weights."""
        return 0.01

    @abstractmethod
    def encode(self, values: NDArray[Any], name: str) -> NDArray[Any]: ...

    @abstractmethod
    def decode(self, states: NDArray[Any]) -> NDArray[Any]: ...

    def statistics(self, states: NDArray[Any]) -> State:
        """Statistics (example, statistic) of states (example, unit)."""
        return states

    @abstractmethod
    def initial_bias(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """Biases (statistic,) that give every unit its own distribution in the data, smoothed."""

    @abstractmethod
    def activate_(self, inputs: Means, bias: Means, further: Further) -> None:
        """Replace inputs (example, statistic) by means."""

    @abstractmethod
    def draw_statistics(self, means: Means, further: Further, stream: NDArray[np.uint32]) -> State:
        """Statistics (example, statistic) drawn with these means."""

    def further_slopes(self, data: State, model: State, further: Further) -> Further:
        """Gradient of the further parameters, from the statistics in both phases."""
        return ()

    def log_weight_of_statistics(self, statistics: State, bias: Means, further: Further) -> Means:
        """The part (example,) of log f that the biases make."""
        return np.matmul(statistics, bias)

    def rbm_arguments(
        self, weights: Means, bias: Means, hidden_bias: Means, *further: Means
    ) -> dict[str, Any]:
        """What makes an RBM, which takes values, of parameters for statistics."""
        return {"weights": weights, "visible_bias": bias, "hidden_bias": hidden_bias, "visible": self.name}
