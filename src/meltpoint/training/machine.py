"""A machine in training: the layers of an RBM or a DBM, float32, changed in place by each step.

An RBM is a machine with one hidden layer. The odd hidden layers h1, h3, … are one side of the machine, the
visible layer and h2, h4, … the other; given one side, the units of the other are independent.

In greedy pretraining of a DBM a layer may stand for two copies of itself with tied weights (Salakhutdinov and
Hinton 2009). Its neighbour receives the sum of both copies, so its state counts from 0 to 2.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.training.draws import draw, draw_pairs, switch_on

Array: TypeAlias = NDArray[np.floating]
States: TypeAlias = list[Array]
"""One array (example, unit) for each layer, visible first."""


@dataclass(frozen=True)
class Machine:
    """Weights (lower unit, upper unit) between neighbouring layers; biases and copies of every layer."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    copies: tuple[int, ...]

    @property
    def n_layers(self) -> int:
        """Number of layers, the visible one included."""
        return len(self.biases)

    def field(self, layer: int, states: States) -> Array:
        """Input (example, unit) to a layer from its neighbours in `states`, which may lack those above."""
        if layer == 0:
            return states[1] @ self.weights[0].T
        below = states[layer - 1] @ self.weights[layer - 1]
        if layer + 1 < len(states):
            below += states[layer + 1] @ self.weights[layer].T
        return below

    def probabilities(self, layer: int, states: States) -> Array:
        """Probability (example, unit) that one copy of a unit is on, given the neighbouring layers."""
        field = self.field(layer, states)
        switch_on(field, self.biases[layer])
        return field

    def draw(self, layer: int, probabilities: Array, stream: NDArray[np.uint32]) -> Array:
        """State (example, unit) of a layer: zeros and ones, or their sum over two copies."""
        state = np.empty_like(probabilities)
        (draw if self.copies[layer] == 1 else draw_pairs)(probabilities, stream, state)
        return state


def new_machine(
    sizes: list[int], rates: NDArray[np.floating], generator: np.random.Generator, copies: tuple[int, ...]
) -> Machine:
    """Small Gaussian weights, and visible biases that give every visible unit its own rate in the data."""
    weights = tuple(generator.normal(0.0, 0.01, shape).astype(np.float32) for shape in pairwise(sizes))
    visible_bias = np.log(rates / (1.0 - rates)).astype(np.float32)
    return Machine(weights, (visible_bias, *(np.zeros(size, np.float32) for size in sizes[1:])), copies)
