"""Directed layers, enumerated: the lower part of a DBN and its recognition."""

import numpy as np

from oracle.tables import BITS, Table, all_states, values_of


def conditional(inputs: Table, n: int, values: tuple[float, float] = BITS) -> Table:
    """Probability (given state, state of n units) of independent units with the given inputs (given state, unit)."""
    gap = values[1] - values[0]
    on = 1 / (1 + np.exp(-gap * inputs))
    off = 1 / (1 + np.exp(gap * inputs))
    bits = all_states(n)[np.newaxis]
    return np.where(bits, on[:, np.newaxis], off[:, np.newaxis]).prod(axis=2)


def generative(
    weights: Table,
    visible_bias: Table,
    lower_values: tuple[float, float] = BITS,
    upper_values: tuple[float, float] = BITS,
) -> Table:
    """p(lower | upper) (upper state, lower state) for weights (lower, upper)."""
    lower, upper = weights.shape
    inputs = values_of(all_states(upper), upper_values) @ weights.T + visible_bias
    return conditional(inputs, lower, lower_values)


def recognition(
    weights: Table,
    recognition_bias: Table,
    lower_values: tuple[float, float] = BITS,
    upper_values: tuple[float, float] = BITS,
) -> Table:
    """q(upper | lower) (lower state, upper state)."""
    lower, upper = weights.shape
    inputs = values_of(all_states(lower), lower_values) @ weights + recognition_bias
    return conditional(inputs, upper, upper_values)
