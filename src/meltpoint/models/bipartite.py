"""The two-sided form: layers on an even and an odd side, couplings only between the sides.

The even units are the state; the odd units are summed out:

    log f(e) = e·a + sum_j softplus(x_j + b_j),   x = e @ W

A layer is coupled only to its neighbours on the other side, so W is kept as blocks and the zero blocks do not
exist. All units are Bernoulli here. Layers of other two-state units come in by an affine map (`as_bernoulli`), which
changes weights and biases and leaves a constant.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import UnitBlock
from meltpoint.annealing.field import BlockPath, MarkovRandomField
from meltpoint.kernels.ordered import ordered_product, strips_for_products
from meltpoint.kernels.rows import Strips
from meltpoint.kernels.sigmoid import sigmoid, sum_softplus
from meltpoint.layers import BERNOULLI, Unit, two_state
from meltpoint.layers.unit import Bits, Floats
from meltpoint.statistics.elementary import softplus


@dataclass(frozen=True, eq=False)
class WeightBlock:
    """Weights (unit of an even layer, unit of an odd layer)."""

    even_layer: int
    odd_layer: int
    weights: Floats

    @cached_property
    def strips(self) -> Strips:
        """The weights as products read them: they are needed for every tile of chains."""
        return strips_for_products(self.weights)


@dataclass(frozen=True, eq=False)
class Bipartite(MarkovRandomField):
    """Biases layer by layer on both sides and the blocks of weights between them."""

    even_biases: tuple[Floats, ...]
    odd_biases: tuple[Floats, ...]
    blocks: tuple[WeightBlock, ...]
    log_constant: float = 0.0

    @cached_property
    def even_slices(self) -> tuple[slice, ...]:
        """Where each even layer lies in a state (chain, even unit)."""
        return _slices(self.even_biases)

    @cached_property
    def odd_slices(self) -> tuple[slice, ...]:
        """Where each odd layer lies in a state (chain, odd unit)."""
        return _slices(self.odd_biases)

    @property
    def placed_weights(self) -> list[tuple[slice, slice, Floats]]:
        """Where the even and the odd units of each block lie, and its weights."""
        return [
            (self.even_slices[block.even_layer], self.odd_slices[block.odd_layer], block.weights)
            for block in self.blocks
        ]

    @cached_property
    def even_bias(self) -> Floats:
        return np.concatenate(self.even_biases)

    @cached_property
    def odd_bias(self) -> Floats:
        return np.concatenate(self.odd_biases)

    @property
    def n_even(self) -> int:
        return self.even_slices[-1].stop

    @property
    def n_odd(self) -> int:
        return self.odd_slices[-1].stop

    @cached_property
    def _sides(self) -> tuple[UnitBlock, UnitBlock]:
        even, odd = (tuple(b.size for b in biases) for biases in (self.even_biases, self.odd_biases))
        return (
            UnitBlock(BERNOULLI, slice(0, self.n_even), even),
            UnitBlock(BERNOULLI, slice(self.n_even, self.n_even + self.n_odd), odd),
        )

    @property
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        """The even side is the state, one block."""
        return self._sides[:1]

    @property
    def summed_out(self) -> UnitBlock:
        return self._sides[1]

    @property
    def draws_in_rows(self) -> bool:
        return True

    def path_from(self, base: tuple[Floats, ...]) -> "BipartitePath":
        even, odd = base
        return BipartitePath(self, (even, odd))

    @property
    def smaller_side(self) -> int:
        return min(self.n_even, self.n_odd)

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound: e·W·o is at most W⁺ (s e + (1 - s) o) for a share s, and independent units are left."""
        even, odd = np.zeros(self.n_even), np.zeros(self.n_odd)
        for rows, columns, weights in self.placed_weights:
            positive = np.maximum(weights, 0.0)
            even[rows] += positive.sum(axis=1)
            odd[columns] += positive.sum(axis=0)
        bounds = [
            sum_softplus(self.even_bias + s * even) + sum_softplus(self.odd_bias + (1 - s) * odd)
            for s in (0.0, 0.5, 1.0)
        ]
        return float(min(bounds)) + self.log_constant

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        """Inputs (chain, unit) of one side given the other."""
        if block is self.summed_out:
            return self.odd_field(units[:, : self.n_even]) + self.odd_bias
        return self.even_field(units[:, self.n_even :]) + self.even_bias

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        """The even units' biases."""
        return ordered_product(units[:, : self.n_even], self.even_bias)

    def lowest_even_log_odds(self, state: Bits, uniforms: Callable[[int], NDArray[np.floating]]) -> Floats:
        """Log odds (chain, unit of the lowest even layer) of being on, given a draw of the lowest odd layer.

        The odd layers are independent given the even ones, so the lowest can be drawn alone.
        """
        rates = self.odd_given_even(state)[:, self.odd_slices[0]]
        odd = uniforms(rates.shape[1]) <= rates
        return ordered_product(odd, self.blocks[0].weights.T) + self.even_biases[0]

    def state_means(self, state: Bits, generator: np.random.Generator) -> Floats:
        """Probability (chain, even unit) of being on, given a draw of the odd side."""
        odd = generator.random((len(state), self.n_odd)) < self.odd_given_even(state)
        return self.even_given_odd(odd)

    def odd_field(self, even: NDArray[Any]) -> Floats:
        """What the even units contribute to the odd units' input: e @ W (chain, odd unit)."""
        field = np.zeros((len(even), self.n_odd))
        for block in self.blocks:
            rows, columns = self.even_slices[block.even_layer], self.odd_slices[block.odd_layer]
            field[:, columns] += ordered_product(even[:, rows], block.strips)
        return field

    def even_field(self, odd: NDArray[Any]) -> Floats:
        """What the odd units contribute to the even units' input: o @ W.T (chain, even unit)."""
        field = np.zeros((len(odd), self.n_even))
        for rows, columns, weights in self.placed_weights:
            field[:, rows] += ordered_product(odd[:, columns], weights.T)
        return field

    def log_f(self, state: NDArray[Any]) -> Floats:
        """Log unnormalised probability (chain,) of even states, the odd side summed out, with its constant."""
        log_f = ordered_product(state, self.even_bias)
        log_f += sum_softplus(self.odd_field(state) + self.odd_bias)
        return log_f + self.log_constant

    def odd_given_even(self, even: NDArray[Any]) -> Floats:
        """Probability (chain, odd unit) of being on."""
        return sigmoid(self.odd_field(even) + self.odd_bias)

    def even_given_odd(self, odd: NDArray[Any]) -> Floats:
        """Probability (chain, even unit) of being on."""
        return sigmoid(self.even_field(odd) + self.even_bias)


@dataclass(frozen=True, eq=False)
class BipartitePath(BlockPath):
    """A path to Bernoulli units on two sides, whose sums have the same bits however many chains there are."""

    target: Bipartite  # pyright: ignore[reportIncompatibleVariableOverride]
    base: tuple[Floats, Floats]

    @property
    def base_even(self) -> Floats:
        """Inputs (even unit,) in the base."""
        return self.base[0]

    @property
    def base_odd(self) -> Floats:
        """Inputs (odd unit,) in the base."""
        return self.base[1]

    def even_bias(self, s: float) -> Floats:
        return self.base_even + s * (self.target.even_bias - self.base_even)

    def odd_bias(self, s: float) -> Floats:
        return self.base_odd + s * (self.target.odd_bias - self.base_odd)

    def log_f(self, s: float, state: NDArray[Any]) -> Floats:
        return ordered_product(state, self.even_bias(s)) + self.odd_log_f(s, state)

    def odd_log_f(self, s: float, state: NDArray[Any]) -> Floats:
        """The odd units' part (chain,) of log f."""
        return sum_softplus(s * self.target.odd_field(state) + self.odd_bias(s))

    def log_prob_base(self, states: NDArray[Any]) -> Floats:
        inputs = self.base_even[: states.shape[1]]
        return ordered_product(states, inputs) - softplus(inputs).sum()


@dataclass(frozen=True, eq=False)
class Layered:
    """Weights (lower layer, upper layer) and biases of layers, lowest first, and a constant of log f."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    log_constant: float = 0.0

    @property
    def bipartite(self) -> Bipartite:
        """Layers 0, 2, 4, … are the even side, layers 1, 3, 5, … the odd side."""
        blocks = [
            WeightBlock(k // 2, k // 2, w)
            if k % 2 == 0
            else WeightBlock((k + 1) // 2, (k - 1) // 2, np.ascontiguousarray(w.T))
            for k, w in enumerate(self.weights)
        ]
        return Bipartite(self.biases[0::2], self.biases[1::2], tuple(blocks), self.log_constant)


def as_bernoulli(weights: Sequence[Floats], biases: Sequence[Floats], units: Sequence[Unit]) -> Layered:
    """The same log f of layers of two-state units, written for their bits: value = offset + scale · bit.

    The layers are given lowest first, with the kind of unit of each.
    """
    if all(unit == BERNOULLI for unit in units):
        return Layered(tuple(weights), tuple(biases))
    units = two_state(units)
    mapped = [unit.scale * bias for unit, bias in zip(units, biases, strict=True)]
    constant = sum(unit.offset * float(bias.sum()) for unit, bias in zip(units, biases, strict=True))
    for k, w in enumerate(weights):
        lower, upper = units[k], units[k + 1]
        mapped[k] = mapped[k] + lower.scale * upper.offset * w.sum(axis=1)
        mapped[k + 1] = mapped[k + 1] + upper.scale * lower.offset * w.sum(axis=0)
        constant += lower.offset * upper.offset * float(w.sum())
    scaled = [units[k].scale * units[k + 1].scale * w for k, w in enumerate(weights)]
    return Layered(tuple(scaled), tuple(mapped), constant)


def _slices(biases: tuple[Floats, ...]) -> tuple[slice, ...]:
    edges = np.cumsum([0, *(b.size for b in biases)]).tolist()
    return tuple(slice(low, high) for low, high in itertools.pairwise(edges))
