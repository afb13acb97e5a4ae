"""A machine in training: the layers of an RBM or a DBM, float32, changed in place by each step.

An RBM is a machine with one hidden layer. The odd hidden layers h1, h3, … are one side of the machine, the
visible layer and h2, h4, … the other; given one side, the units of the other are independent.

In greedy pretraining of a DBM a layer may stand for two copies of itself with tied weights (Salakhutdinov and
Hinton 2009). Its neighbour receives the sum of both copies, so its state counts from 0 to 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.training.coupling import Coupling, State
from meltpoint.training.draws import draw, draw_pairs, switch_on

Array: TypeAlias = NDArray[np.floating]
States: TypeAlias = list[State]
"""One array (example, unit) for each layer, visible first."""


_HIDDEN_BIAS = -2.0


@dataclass(frozen=True)
class Machine:
    """Couplings between neighbouring layers; biases and copies of every layer."""

    couplings: tuple[Coupling, ...]
    biases: tuple[Array, ...]
    copies: tuple[int, ...]

    @property
    def n_layers(self) -> int:
        """Number of layers, the visible one included."""
        return len(self.biases)

    @property
    def parameters(self) -> tuple[Array, ...]:
        """All weights, then all biases."""
        return (*(coupling.weights for coupling in self.couplings), *self.biases)

    def probabilities(self, layer: int, states: States, from_below: Array | None = None) -> Array:
        """Probability (example, unit) that one copy of a unit is on, given the neighbours in `states`.

        `states` may end below the layer: then the layers above it are left out. The input from below is
        computed unless it is given.
        """
        if layer == 0:
            field = self.couplings[0].down(states[1])
        else:
            field = (
                self.couplings[layer - 1].up(states[layer - 1]) if from_below is None else from_below.copy()
            )
            if layer + 1 < len(states):
                field += self.couplings[layer].down(states[layer + 1])
        switch_on(field, self.biases[layer])
        return field

    def draw(self, layer: int, probabilities: Array, stream: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """State (example, unit) of a layer: zeros and ones, or their sum over two copies."""
        state = np.empty(probabilities.shape, np.uint8)
        (draw if self.copies[layer] == 1 else draw_pairs)(probabilities, stream, state)
        return state


def machine_of(parameters: Sequence[Array], copies: tuple[int, ...]) -> Machine:
    """The machine with these parameters: all weights, then all biases."""
    n = len(copies) - 1
    return Machine(tuple(map(Coupling, parameters[:n])), tuple(parameters[n:]), copies)


def new_machine(
    sizes: Sequence[int], rates: NDArray[np.floating], generator: np.random.Generator, copies: tuple[int, ...]
) -> Machine:
    """Small Gaussian weights, and visible biases that give every visible unit its own rate in the data.

    Hidden units are rarely on at first. They become sparse features, which are learned sooner than those that
    start at one half, and for which sparse products pay (docs/decisions/training.md).
    """
    weights = [generator.normal(0.0, 0.01, shape).astype(np.float32) for shape in pairwise(sizes)]
    visible_bias = np.log(rates / (1.0 - rates)).astype(np.float32)
    hidden_biases = [np.full(size, _HIDDEN_BIAS, np.float32) for size in sizes[1:]]
    return machine_of([*weights, visible_bias, *hidden_biases], copies)
