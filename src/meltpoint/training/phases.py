"""A DBM in training, and what one update needs of it: the data phase, the model phase and the gradient.

An RBM is a DBM with one hidden layer. The odd hidden layers h1, h3, … are one side, the visible layer and h2, h4, …
the other; given one side, the units of the other are independent. Parameters are float32 and changed in place.

In the greedy pretraining of a DBM a layer may stand for two copies of itself with tied weights (Salakhutdinov and
Hinton 2009). Its neighbour receives the sum of both copies, so its state counts from 0 to 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.bit_products import Coupling, State, pair_sums
from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.draws import draw_counts
from meltpoint.kernels.streams import LANES
from meltpoint.layers import BERNOULLI, Unit
from meltpoint.layers.unit import Further
from meltpoint.randomness import Purpose, sequence
from meltpoint.statistics.special import xlogy

Array: TypeAlias = NDArray[np.floating]
States: TypeAlias = list[State]
"""One array (example, unit) for each layer, visible first."""

_INITIAL_HIDDEN_BIAS = -2.0


@dataclass(frozen=True)
class Architecture:
    """Number of units and copies of every layer, visible first."""

    sizes: tuple[int, ...]
    copies: tuple[int, ...]
    visible: Unit = BERNOULLI


@dataclass(frozen=True)
class TrainableDBM:
    """Couplings between neighbouring layers; biases and copies of every layer."""

    couplings: tuple[Coupling, ...]
    biases: tuple[Array, ...]
    copies: tuple[int, ...]
    visible: Unit = BERNOULLI
    further: Further = ()

    @property
    def n_layers(self) -> int:
        return len(self.biases)

    @property
    def parameters(self) -> tuple[Array, ...]:
        """All weights, then all biases, then what the visible units have besides."""
        return (*(coupling.weights for coupling in self.couplings), *self.biases, *self.further)

    def unit(self, layer: int) -> Unit:
        return self.visible if layer == 0 else BERNOULLI

    def probabilities(self, layer: int, states: States, from_below: Array | None = None) -> Array:
        """Mean (example, unit) of one copy of the units, given the neighbours in `states`: that they are on, mostly.

        `states` may end below the layer: then the layers above it are left out. The input from below is
        computed unless it is given.
        """
        if layer == 0:
            inputs = self.couplings[0].down(states[1])
        else:
            inputs = (
                self.couplings[layer - 1].up(states[layer - 1]) if from_below is None else from_below.copy()
            )
            if layer + 1 < len(states):
                inputs += self.couplings[layer].down(states[layer + 1])
        self.unit(layer).activate_(inputs, self.biases[layer], self.further)
        return inputs

    def means(self, layer: int, states: States, from_below: Array | None = None) -> Array:
        """Mean (example, unit) of a layer's units, summed over its copies, given the neighbours in `states`."""
        probabilities = self.probabilities(layer, states, from_below)
        return probabilities if self.copies[layer] == 1 else probabilities * self.copies[layer]

    def draw_layer(self, layer: int, probabilities: Array, stream: NDArray[np.uint32]) -> State:
        """Statistics (example, unit) of a layer, summed over its copies."""
        if self.copies[layer] == 1:
            return self.unit(layer).draw_statistics(probabilities, self.further, stream)
        counts = np.empty(probabilities.shape, np.uint8)
        draw_counts(probabilities, stream, counts)
        return counts


def trainable_dbm(
    parameters: Sequence[Array], copies: tuple[int, ...], visible: Unit = BERNOULLI
) -> TrainableDBM:
    """The DBM with these parameters, in the order of `TrainableDBM.parameters`."""
    n = len(copies) - 1
    biases, further = tuple(parameters[n : 2 * n + 1]), tuple(parameters[2 * n + 1 :])
    return TrainableDBM(tuple(map(Coupling, parameters[:n])), biases, copies, visible, further)


def initial_dbm(
    architecture: Architecture, visible_bias: NDArray[np.floating], generator: np.random.Generator
) -> TrainableDBM:
    """Small Gaussian weights, and the visible biases, which give every visible unit its own rate in the data.

    Hidden units are rarely on at first. They become sparse features, which are learned sooner than those that
    start at one half, and for which sparse products pay (docs/decisions/training.md).
    """
    sizes = architecture.sizes
    weights = [
        generator.normal(0.0, architecture.visible.initial_weight, shape).astype(np.float32)
        for shape in pairwise(sizes)
    ]
    hidden_biases = [np.full(size, _INITIAL_HIDDEN_BIAS, np.float32) for size in sizes[1:]]
    further = [np.zeros(sizes[0], np.float32) for _ in range(architecture.visible.n_further)]
    parameters = [*weights, visible_bias.astype(np.float32), *hidden_biases, *further]
    return trainable_dbm(parameters, architecture.copies, architecture.visible)


def data_phase(dbm: TrainableDBM, visible: State, sweeps: int) -> States:
    """The visible layer, and the mean of every hidden layer given it.

    With one hidden layer the means are exact and `sweeps` is not used. With more this is mean field: from a
    bottom-up pass that doubles each input to make up for the missing layer above, every hidden layer is
    `sweeps` times replaced by its means given its neighbours' means.
    """
    states: States = [cast(State, visible * np.uint8(dbm.copies[0]))]
    for layer in range(1, dbm.n_layers):
        below = states[-1] if layer + 1 == dbm.n_layers else states[-1] * np.uint8(2)
        states.append(dbm.means(layer, [*states[:-1], below]))
    if dbm.n_layers > 2:
        from_visible = dbm.couplings[0].up(states[0])
        for _ in range(sweeps):
            for layer in range(1, dbm.n_layers):
                states[layer] = dbm.means(layer, states, from_visible if layer == 1 else None)
    return states


def log_f_bound(dbm: TrainableDBM, states: States) -> Array:
    """Lower bound (example,) on log f of the visible layer, from the hidden means of the data phase.

    Expected log f plus the entropy of independent hidden units; exact for one hidden layer.
    """
    bound = dbm.visible.log_weight_of_statistics(states[0], dbm.biases[0], dbm.further)
    for layer in range(1, dbm.n_layers):
        field = dbm.couplings[layer - 1].up(states[layer - 1]) + dbm.biases[layer]
        rates = states[layer] / dbm.copies[layer]
        entropy = -xlogy(rates, rates) - xlogy(1 - rates, 1 - rates)
        bound = bound + (states[layer] * field + dbm.copies[layer] * entropy).sum(axis=1)
    return bound


def start_chains(dbm: TrainableDBM, data: States, chains: int, stream: NDArray[np.uint32]) -> States:
    """Odd layers (h1, h3, …) of chains that start at the data, each example serving as often as needed."""
    rows = np.arange(chains) % len(data[0])
    odd = range(1, dbm.n_layers, 2)
    return [
        dbm.draw_layer(layer, data[layer][rows] * np.float32(1 / dbm.copies[layer]), stream) for layer in odd
    ]


def model_phase(dbm: TrainableDBM, odd: States, k: int, stream: NDArray[np.uint32]) -> tuple[States, States]:
    """All layers, and the odd layers drawn, after k Gibbs steps of chains whose odd layers are given.

    Of the layers returned first, even ones are drawn and odd ones are their means given them, which are less
    noisy than draws. The chains continue from the odd layers returned second.
    """
    states: States = [odd[0]] * dbm.n_layers
    probabilities: list[Array] = []
    for _ in range(k):
        states[1::2] = odd
        for layer in range(0, dbm.n_layers, 2):
            states[layer] = dbm.draw_layer(layer, dbm.probabilities(layer, states), stream)
        probabilities = [dbm.probabilities(layer, states) for layer in range(1, dbm.n_layers, 2)]
        odd = [dbm.draw_layer(2 * i + 1, p, stream) for i, p in enumerate(probabilities)]
    copies = dbm.copies[1::2]
    states[1::2] = [p if n == 1 else p * n for p, n in zip(probabilities, copies, strict=True)]
    return states, odd


@dataclass(frozen=True)
class Gradient:
    """Data minus model: the means of products of neighbouring units, of units, and the slopes of `further`."""

    pairs: tuple[Array, ...]
    units: tuple[Array, ...]
    further: Further = ()


def gradient(data: States, model: States, dtype: np.dtype) -> Gradient:
    """Gradient of the log likelihood, exact on average if `data` and `model` are exact samples of their phases."""
    n, m = len(data[0]), len(model[0])
    share = np.concatenate([np.full(n, 1 / n, dtype), np.full(m, -1 / m, dtype)])
    both = [cast(State, np.concatenate(pair)) for pair in zip(data, model, strict=True)]
    pairs = [pair_sums(lower, np.multiply(upper, share[:, np.newaxis])) for lower, upper in pairwise(both)]
    return Gradient(tuple(pairs), tuple(np.matmul(share, layer) for layer in both))


def centre(gradient: Gradient, offsets: Sequence[Array]) -> None:
    """Make it the gradient of the same model written with units minus offsets (Montavon and Müller 2012).

    A weight that grows also raises the mean input of the units that it couples, which their biases must undo. With
    offsets near the mean activities the two are decoupled, and one learning rate suits all parameters.
    """
    for k, pair in enumerate(gradient.pairs):
        _subtract_means(pair, offsets[k], gradient.units[k], offsets[k + 1], gradient.units[k + 1])
    for k, pair in enumerate(gradient.pairs):
        gradient.units[k][:] -= pair @ offsets[k + 1]
        gradient.units[k + 1][:] -= offsets[k] @ pair


@compiled
def _subtract_means(
    pair: np.ndarray, low_offset: np.ndarray, low: np.ndarray, high_offset: np.ndarray, high: np.ndarray
) -> None:
    for i in range(pair.shape[0]):
        row, a, b = pair[i], low_offset[i], low[i]
        for j in range(row.size):
            row[j] -= a * high[j] + b * high_offset[j]


def random_stream(seed: int, *key: int) -> NDArray[np.uint32]:
    """Generators (1, 4, lane) of the annealing kernels for one key (stage, epoch, …) of a training run."""
    words = sequence(seed, Purpose.TRAINING, *key).generate_state(4 * LANES, np.uint32)
    return words.astype(np.uint32).reshape(1, 4, LANES)
