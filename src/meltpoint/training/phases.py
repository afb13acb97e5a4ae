"""The two phases of learning: what the data say about every pair of units, and what the model says."""

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from meltpoint.annealing.kernels.compiling import compiled
from meltpoint.training.coupling import State, pair_sums
from meltpoint.training.machine import Array, Machine, States


@dataclass(frozen=True)
class Gradient:
    """Data minus model: the means of products of neighbouring units, and the means of units."""

    pairs: tuple[Array, ...]
    units: tuple[Array, ...]


def infer(machine: Machine, visible: NDArray[np.uint8], sweeps: int) -> States:
    """Data phase: the visible layer, and the mean of every hidden layer given it.

    With one hidden layer the means are exact and `sweeps` is not used. With more this is mean field: from a
    bottom-up pass that doubles each input to make up for the missing layer above, every hidden layer is
    `sweeps` times replaced by its means given its neighbours' means.
    """
    states: States = [visible * np.uint8(machine.copies[0])]
    for layer in range(1, machine.n_layers):
        below = states[-1] if layer + 1 == machine.n_layers else states[-1] * np.uint8(2)
        states.append(_mean(machine, layer, [*states[:-1], below]))
    if machine.n_layers > 2:
        from_visible = machine.couplings[0].up(states[0])
        for _ in range(sweeps):
            for layer in range(1, machine.n_layers):
                states[layer] = _mean(machine, layer, states, from_visible if layer == 1 else None)
    return states


def log_f_bound(machine: Machine, states: States) -> Array:
    """Lower bound (example,) on log f of the visible layer, from the hidden means that `infer` gave.

    Expected log f plus the entropy of independent hidden units; exact for one hidden layer.
    """
    bound = np.matmul(states[0], machine.biases[0])
    for layer in range(1, machine.n_layers):
        field = machine.couplings[layer - 1].up(states[layer - 1]) + machine.biases[layer]
        rates = states[layer] / machine.copies[layer]
        entropy = -xlogy(rates, rates) - xlogy(1 - rates, 1 - rates)
        bound = bound + (states[layer] * field + machine.copies[layer] * entropy).sum(axis=1)
    return bound


def begin(machine: Machine, data: States, chains: int, stream: NDArray[np.uint32]) -> States:
    """Odd layers (h1, h3, …) of chains that start at the data, each example serving as often as needed."""
    rows = np.arange(chains) % len(data[0])
    odd = range(1, machine.n_layers, 2)
    return [
        machine.draw(layer, data[layer][rows] * np.float32(1 / machine.copies[layer]), stream)
        for layer in odd
    ]


def dream(machine: Machine, odd: States, k: int, stream: NDArray[np.uint32]) -> tuple[States, States]:
    """Model phase: k Gibbs steps of chains whose odd layers are given.

    Returns the layers, even ones drawn and odd ones as their means given them (less noise than draws), and
    the odd layers drawn, from which the chains go on.
    """
    states: States = [odd[0]] * machine.n_layers
    means: list[Array] = []
    for _ in range(k):
        states[1::2] = odd
        for layer in range(0, machine.n_layers, 2):
            states[layer] = machine.draw(layer, machine.probabilities(layer, states), stream)
        means = [machine.probabilities(layer, states) for layer in range(1, machine.n_layers, 2)]
        odd = [machine.draw(2 * i + 1, mean, stream) for i, mean in enumerate(means)]
    states[1::2] = [_times(mean, machine.copies[2 * i + 1]) for i, mean in enumerate(means)]
    return states, odd


def gradient(data: States, model: States, kind: np.dtype) -> Gradient:
    """Direction that raises the likelihood, if `data` and `model` are what their phases stand for."""
    n, m = len(data[0]), len(model[0])
    share = np.concatenate([np.full(n, 1 / n, kind), np.full(m, -1 / m, kind)])
    both = [cast(State, np.concatenate(pair)) for pair in zip(data, model, strict=True)]
    pairs = [pair_sums(lower, np.multiply(upper, share[:, np.newaxis])) for lower, upper in pairwise(both)]
    return Gradient(tuple(pairs), tuple(np.matmul(share, layer) for layer in both))


def centre(gradient: Gradient, offsets: list[Array]) -> None:
    """Make it the gradient of the same machine written with units minus offsets (Montavon and Müller 2012).

    A weight that grows also raises the mean input of the units it joins, which their biases must undo. With
    offsets near the mean activities the two come apart, and one learning rate suits all parameters.
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


def _mean(machine: Machine, layer: int, states: States, from_below: Array | None = None) -> Array:
    return _times(machine.probabilities(layer, states, from_below), machine.copies[layer])


def _times(probabilities: Array, copies: int) -> Array:
    return probabilities if copies == 1 else probabilities * copies
