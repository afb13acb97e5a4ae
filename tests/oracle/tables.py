"""Enumerated models: log f of every joint state (v, h1, h2, …), from the energy functions and nothing else.

These modules (but not `driving`) import nothing of the library: they are what it is compared with. A model is
given by its weight matrices and bias vectors, visible layer first; its joint states are the rows of
`all_states(number of units)`, layers side by side.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


def all_states(n: int) -> NDArray[np.uint8]:
    """Every state (2**n, n) of n binary units, counting upwards; the first unit is the highest binary digit."""
    return (np.arange(2**n)[:, np.newaxis] >> np.arange(n)[::-1] & 1).astype(np.uint8)


def code(bits: NDArray[np.generic]) -> NDArray[np.int64]:
    """The row of `all_states` that holds each state (…, n)."""
    return bits.astype(np.int64) @ (1 << np.arange(bits.shape[-1])[::-1])


BITS, SPINS = (0.0, 1.0), (-1.0, 1.0)
"""The values of a unit's two states."""


def values_of(states: NDArray[np.generic], values: tuple[float, float]) -> Table:
    """The values of states, which are zeros and ones."""
    return np.where(states == 1, values[1], values[0])


@dataclass(frozen=True)
class Layers:
    """Parameters of a layered Boltzmann machine, visible layer first; an RBM has one matrix.

    `values` are those of the two states of each layer's units: zeros and ones if they are left out.
    """

    weights: tuple[Table, ...]
    biases: tuple[Table, ...]
    values: tuple[tuple[float, float], ...] = ()

    @property
    def sizes(self) -> list[int]:
        """Units of each layer."""
        return [b.size for b in self.biases]

    @property
    def layer_of_unit(self) -> NDArray[np.int64]:
        """Number of the layer each unit belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def log_f(self) -> Table:
        """log f (joint state,): every bias term and every coupling, added up."""
        states = all_states(sum(self.sizes))
        parts = [
            values_of(part, values)
            for part, values in zip(
                np.split(states, np.cumsum(self.sizes)[:-1], axis=1),
                self.values or (BITS,) * len(self.sizes),
                strict=True,
            )
        ]
        total = sum(part @ bias for part, bias in zip(parts, self.biases, strict=True))
        for lower, upper, weights in zip(parts[:-1], parts[1:], self.weights, strict=True):
            total = total + np.einsum("si,ij,sj->s", lower, weights, upper)
        return np.asarray(total)


def independent(biases: tuple[Table, ...], values: tuple[tuple[float, float], ...] = ()) -> Layers:
    """The model without couplings that has these biases: a base distribution."""
    return Layers(tuple(np.zeros((a.size, b.size)) for a, b in pairwise(biases)), biases, values)


def add_up(which: NDArray[np.int64], values: Table, n: int) -> Table:
    """Sum (n,) of the values that belong to each number below n."""
    return np.bincount(which, values, n).astype(np.float64)


def marginal(table: Table, keep: NDArray[np.bool_]) -> Table:
    """Sum of a table (joint state,) over all units but those kept: (state of the kept units,)."""
    which = code(all_states(keep.size)[:, keep])
    return add_up(which, table, 2 ** int(keep.sum()))
