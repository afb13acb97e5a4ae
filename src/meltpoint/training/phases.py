"""The two phases of learning: what the data say about every pair of units, and what the model says."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.training.machine import Array, Machine, States


@dataclass(frozen=True)
class Gradient:
    """Data minus model: the means of products of neighbouring units, and the means of units."""

    pairs: tuple[Array, ...]
    units: tuple[Array, ...]


def infer(machine: Machine, visible: Array, sweeps: int) -> States:
    """Data phase: the visible layer, and the mean of every hidden layer given it.

    With one hidden layer the means are exact and `sweeps` is not used. With more this is mean field: from a
    bottom-up pass that doubles each input to make up for the missing layer above, every hidden layer is
    `sweeps` times replaced by its means given its neighbours' means.
    """
    states = [visible * machine.copies[0]] if machine.copies[0] > 1 else [visible]
    for layer in range(1, machine.n_layers):
        below = 2 * states[-1] if layer + 1 < machine.n_layers else states[-1]
        states.append(_mean(machine, layer, [*states[:-1], below]))
    if machine.n_layers > 2:
        for _ in range(sweeps):
            for layer in range(1, machine.n_layers):
                states[layer] = _mean(machine, layer, states)
    return states


def begin(machine: Machine, data: States, chains: int, stream: NDArray[np.uint32]) -> States:
    """Odd layers (h1, h3, …) of chains that start at the data, each example serving as often as needed."""
    rows = np.arange(chains) % len(data[0])
    odd = range(1, machine.n_layers, 2)
    return [machine.draw(layer, data[layer][rows] / machine.copies[layer], stream) for layer in odd]


def dream(machine: Machine, odd: States, k: int, stream: NDArray[np.uint32]) -> tuple[States, States]:
    """Model phase: k Gibbs steps of chains whose odd layers are given.

    Returns the layers, even ones drawn and odd ones as their means given them (less noise than draws), and
    the odd layers drawn, from which the chains go on.
    """
    states: States = [odd[0]] * machine.n_layers
    means: States = []
    for _ in range(k):
        states[1::2] = odd
        for layer in range(0, machine.n_layers, 2):
            states[layer] = machine.draw(layer, machine.probabilities(layer, states), stream)
        means = [machine.probabilities(layer, states) for layer in range(1, machine.n_layers, 2)]
        odd = [machine.draw(2 * i + 1, mean, stream) for i, mean in enumerate(means)]
    states[1::2] = [mean * machine.copies[2 * i + 1] for i, mean in enumerate(means)]
    return states, odd


def gradient(data: States, model: States) -> Gradient:
    """Direction that raises the likelihood, if `data` and `model` are what their phases stand for."""
    signed = [
        np.concatenate([d / d.dtype.type(len(d)), m / -m.dtype.type(len(m))])
        for d, m in zip(data, model, strict=True)
    ]
    both = [np.concatenate([d, m]) for d, m in zip(data, model, strict=True)]
    pairs = tuple(lower.T @ upper for lower, upper in zip(both[:-1], signed[1:], strict=True))
    return Gradient(pairs, tuple(layer.sum(axis=0) for layer in signed))


def centred(plain: Gradient, offsets: list[Array]) -> Gradient:
    """The gradient of the same machine written with units minus offsets (Montavon and Müller 2012).

    Moving a bias and the weights at it separately fights over the mean activity; with offsets near the mean
    activities the two directions come apart, and one learning rate suits all parameters.
    """
    pairs = tuple(
        pair - np.outer(offsets[k], plain.units[k + 1]) - np.outer(plain.units[k], offsets[k + 1])
        for k, pair in enumerate(plain.pairs)
    )
    units = [unit.copy() for unit in plain.units]
    for k, pair in enumerate(pairs):
        units[k] -= pair @ offsets[k + 1]
        units[k + 1] -= offsets[k] @ pair
    return Gradient(pairs, tuple(units))


def _mean(machine: Machine, layer: int, states: States) -> Array:
    return machine.probabilities(layer, states) * machine.copies[layer]
