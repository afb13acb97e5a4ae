"""The compiled inner loop of elimination: tables added up and one unit summed out, in logarithms."""

import math

import numpy as np

from meltpoint.kernels.compiling import compiled


@compiled
def sum_out(
    values: np.ndarray,
    starts: np.ndarray,
    strides: np.ndarray,
    sizes: np.ndarray,
    n_states: int,
    first: int,
    message: np.ndarray,
) -> None:
    """message[k] = log of the sum over a unit's states of exp(sum of tables) at state first + k of the other units.

    `values` holds all tables one after the other, beginning at `starts` (table,); `strides` (table, unit) lead to a
    state of the other units, whose numbers of states are `sizes` (unit,), the last unit fastest. The summed-out
    unit's own states lie side by side.
    """
    n_tables, n_others = strides.shape
    counter = np.zeros(n_others, np.int64)
    position = starts.copy()
    rest = first
    for j in range(n_others - 1, -1, -1):
        counter[j] = rest % sizes[j]
        rest //= sizes[j]
        for t in range(n_tables):
            position[t] += counter[j] * strides[t, j]
    total = np.empty(n_states)
    for k in range(message.size):
        largest = -math.inf
        for x in range(n_states):
            value = 0.0
            for t in range(n_tables):
                value += values[position[t] + x]
            total[x] = value
            largest = max(largest, value)
        if largest == -math.inf:
            message[k] = -math.inf
        else:
            mass = 0.0
            for x in range(n_states):
                mass += math.exp(total[x] - largest)
            message[k] = largest + math.log(mass)
        for j in range(n_others - 1, -1, -1):
            counter[j] += 1
            if counter[j] < sizes[j]:
                for t in range(n_tables):
                    position[t] += strides[t, j]
                break
            for t in range(n_tables):
                position[t] -= (sizes[j] - 1) * strides[t, j]
            counter[j] = 0
