"""Likelihoods of small machines by enumeration, and their derivatives by finite differences."""

from collections.abc import Callable, Sequence
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from oracle.tables import Layers, all_states, marginal

Table = NDArray[np.float64]

# Sixth-order central differences: with a step of 0.002 both the truncation and the rounding are below 1e-11.
_STENCIL = ((-3, -1 / 60), (-2, 9 / 60), (-1, -45 / 60), (1, 45 / 60), (2, -9 / 60), (3, 1 / 60))
_STEP = 2e-3


def random_parameters(sizes: Sequence[int], seed: int, scale: float = 0.7) -> list[Table]:
    """Weights, then biases, of a layered machine."""
    rng = np.random.default_rng(seed)
    shapes = [*pairwise(sizes), *((size,) for size in sizes)]
    return [rng.normal(0.0, scale, shape) for shape in shapes]


def layers(parameters: Sequence[Table]) -> Layers:
    """The oracle's machine with the same parameters."""
    n = len(parameters) // 2
    return Layers(tuple(parameters[:n]), tuple(parameters[n:]))


def visible_log_probabilities(parameters: Sequence[Table]) -> Table:
    """log p(v) (visible state,)."""
    model = layers(parameters)
    log_f = model.log_f()
    probabilities = np.exp(log_f - logsumexp(log_f))
    return np.log(marginal(probabilities, model.layer_of_unit == 0))


def joint_states(parameters: Sequence[Table]) -> tuple[list[NDArray[np.uint8]], Table]:
    """Every joint state, layer by layer, and its probability."""
    model = layers(parameters)
    log_f = model.log_f()
    states = all_states(sum(model.sizes))
    return np.split(states, np.cumsum(model.sizes)[:-1], axis=1), np.exp(log_f - logsumexp(log_f))


def tied_log_likelihood(
    parameters: Sequence[Table], copies: tuple[int, int], data: NDArray[np.uint8]
) -> float:
    """Mean log p(all visible copies equal v) of an RBM whose layers are copied, written out unit by unit."""
    weights, visible_bias, hidden_bias = parameters
    full = [
        np.tile(weights, copies),
        np.tile(visible_bias, copies[0]),
        np.tile(hidden_bias, copies[1]),
    ]
    log_p = visible_log_probabilities(full)
    codes = np.tile(data, copies[0]).astype(np.int64) @ (1 << np.arange(full[1].size)[::-1])
    return float(log_p[codes].mean())


def derivative(objective: Callable[[list[Table]], float], parameters: Sequence[Table]) -> list[Table]:
    """Gradient of an objective with respect to every parameter."""
    slopes = []
    for which, array in enumerate(parameters):
        slope = np.zeros_like(array)
        for index in product(*map(range, array.shape)):
            for steps, weight in _STENCIL:
                moved = [p.copy() for p in parameters]
                moved[which][index] += steps * _STEP
                slope[index] += weight * objective(moved) / _STEP
        slopes.append(slope)
    return slopes


def bernoulli(states: NDArray[np.generic], rates: Table) -> Table:
    """Probability (row,) of zeros and ones drawn with these rates."""
    return np.where(states == 1, rates, 1 - rates).prod(axis=1)
