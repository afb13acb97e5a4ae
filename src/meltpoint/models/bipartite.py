"""The two-sided form: layers on an even and an odd side, couplings only between the sides.

The even units are the state; the odd units are summed out:

    log f(e) = e·a + sum_j softplus(x_j + b_j),   x = e @ W

A layer is coupled only to its neighbours on the other side, so W is kept as blocks and the zero blocks do not
exist.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from meltpoint.models.checks import Floats

_FACTORS = 64  # 2**64 is far below the largest float32


@dataclass(frozen=True)
class Block:
    """Weights (unit of an even layer, unit of an odd layer)."""

    even_layer: int
    odd_layer: int
    weights: Floats


@dataclass(frozen=True)
class Bipartite:
    """Biases layer by layer on both sides and the blocks of weights between them."""

    even_biases: tuple[Floats, ...]
    odd_biases: tuple[Floats, ...]
    blocks: tuple[Block, ...]

    @cached_property
    def even_slices(self) -> tuple[slice, ...]:
        """Where each even layer lies in a state (chain, even unit)."""
        return _slices(self.even_biases)

    @cached_property
    def odd_slices(self) -> tuple[slice, ...]:
        """Where each odd layer lies in a state (chain, odd unit)."""
        return _slices(self.odd_biases)

    @cached_property
    def even_bias(self) -> Floats:
        """Biases (even unit,)."""
        return np.concatenate(self.even_biases)

    @cached_property
    def odd_bias(self) -> Floats:
        """Biases (odd unit,)."""
        return np.concatenate(self.odd_biases)

    @property
    def n_even(self) -> int:
        """Number of even units."""
        return self.even_slices[-1].stop

    @property
    def n_odd(self) -> int:
        """Number of odd units."""
        return self.odd_slices[-1].stop

    def odd_field(self, even: NDArray[Any]) -> Floats:
        """What the even units contribute to the odd units' input: e @ W (chain, odd unit)."""
        field = np.zeros((len(even), self.n_odd))
        for block in self.blocks:
            rows, columns = self.even_slices[block.even_layer], self.odd_slices[block.odd_layer]
            field[:, columns] += even[:, rows] @ block.weights
        return field

    def even_field(self, odd: NDArray[Any]) -> Floats:
        """What the odd units contribute to the even units' input: o @ W.T (chain, even unit)."""
        field = np.zeros((len(odd), self.n_even))
        for block in self.blocks:
            rows, columns = self.even_slices[block.even_layer], self.odd_slices[block.odd_layer]
            field[:, rows] += odd[:, columns] @ block.weights.T
        return field

    def log_f(self, even: NDArray[Any]) -> Floats:
        """Log unnormalised probability (chain,) of even states, the odd side summed out."""
        return even @ self.even_bias + sum_softplus(self.odd_field(even) + self.odd_bias)

    def odd_given_even(self, even: NDArray[Any]) -> Floats:
        """Probability (chain, odd unit) of being on."""
        return expit(self.odd_field(even) + self.odd_bias)

    def even_given_odd(self, odd: NDArray[Any]) -> Floats:
        """Probability (chain, even unit) of being on."""
        return expit(self.even_field(odd) + self.even_bias)


def sum_softplus(x: NDArray[np.floating]) -> Floats:
    """Sum of softplus over the last axis, in x's precision, with one logarithm for many units.

    softplus(x) = max(x, 0) + log(1 + exp(-|x|)), and a product of factors between 1 and 2 cannot overflow soon.
    """
    factors = np.exp(-np.abs(x))
    factors += 1
    starts = np.arange(0, x.shape[-1], _FACTORS)
    logs = np.log(np.multiply.reduceat(factors, starts, axis=-1))
    return np.maximum(x, 0).sum(axis=-1, dtype=np.float64) + logs.sum(axis=-1, dtype=np.float64)


def softplus(x: NDArray[np.floating]) -> Floats:
    """log(1 + exp(x)) without overflow."""
    return np.logaddexp(0.0, x)


def _slices(biases: tuple[Floats, ...]) -> tuple[slice, ...]:
    edges = np.cumsum([0, *(b.size for b in biases)]).tolist()
    return tuple(slice(low, high) for low, high in itertools.pairwise(edges))
