"""Directed sigmoid layers, enumerated: the lower part of a DBN and its recognition."""

import numpy as np

from oracle.tables import Table, all_states


def conditional(inputs: Table, n: int) -> Table:
    """Probability (given state, state of n units) of independent units with the given inputs (given state, unit)."""
    on = 1 / (1 + np.exp(-inputs))
    off = 1 / (1 + np.exp(inputs))
    bits = all_states(n)[np.newaxis]
    return np.where(bits, on[:, np.newaxis], off[:, np.newaxis]).prod(axis=2)


def generative(weights: Table, visible_bias: Table) -> Table:
    """p(lower | upper) (upper state, lower state) for weights (lower, upper)."""
    lower, upper = weights.shape
    return conditional(all_states(upper) @ weights.T + visible_bias, lower)


def recognition(weights: Table, recognition_bias: Table) -> Table:
    """q(upper | lower) (lower state, upper state)."""
    lower, upper = weights.shape
    return conditional(all_states(lower) @ weights + recognition_bias, upper)
