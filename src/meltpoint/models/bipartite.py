"""Layers of units on an even and an odd side, coupled only between the sides: the field of RBMs and DBMs.

The even units are the state; the odd units are summed out. With u(e) and u(o) the numbers of the units that weights
multiply (which state each Potts unit is in, the values of others),

    log f(e, o) = log weight of e under its biases + log weight of o under its biases + u(e)·W·u(o).

A layer is coupled only to its neighbours on the other side, so W is kept as blocks and the zero blocks do not exist.
Layers of two-state units are written for their bits (`in_bits`): where all are, log f(e) = e·a + Σ softplus(e @ W + b).
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
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
from meltpoint.layers import BERNOULLI, Unit
from meltpoint.layers.unit import Floats, States
from meltpoint.models.factors import Factors, layered_factors
from meltpoint.models.model import Model, Uniforms
from meltpoint.statistics.elementary import log, softplus


@dataclass(frozen=True, eq=False)
class WeightBlock:
    """Weights (coupled number of an even layer, coupled number of an odd layer)."""

    even_layer: int
    odd_layer: int
    weights: Floats

    @cached_property
    def strips(self) -> Strips:
        """The weights as products read them: they are needed for every tile of chains."""
        return strips_for_products(self.weights)


@dataclass(frozen=True, eq=False)
class Bipartite(MarkovRandomField):
    """Biases (unit, *input_shape) layer by layer on both sides, and the blocks of weights between them."""

    even_biases: tuple[Floats, ...]
    odd_biases: tuple[Floats, ...]
    blocks: tuple[WeightBlock, ...]
    log_constant: float = 0.0
    even_unit: Unit = BERNOULLI
    odd_unit: Unit = BERNOULLI

    @property
    def has_bits(self) -> bool:
        """Whether all units are bits."""
        return self.even_unit == BERNOULLI and self.odd_unit == BERNOULLI

    @cached_property
    def even_slices(self) -> tuple[slice, ...]:
        """Where each even layer lies in a state (chain, even unit)."""
        return _slices(self.even_biases, 1)

    @cached_property
    def odd_slices(self) -> tuple[slice, ...]:
        """Where each odd layer lies in a state (chain, odd unit)."""
        return _slices(self.odd_biases, 1)

    @cached_property
    def placed_blocks(self) -> list[tuple[slice, slice, WeightBlock]]:
        """Each block, and where the numbers that it couples lie on the even and on the odd side."""
        even = _slices(self.even_biases, self.even_unit.n_coupled)
        odd = _slices(self.odd_biases, self.odd_unit.n_coupled)
        return [(even[block.even_layer], odd[block.odd_layer], block) for block in self.blocks]

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
        n, m = self.n_even, self.n_odd
        even, odd = (tuple(map(len, biases)) for biases in (self.even_biases, self.odd_biases))
        return UnitBlock(self.even_unit, slice(0, n), even), UnitBlock(self.odd_unit, slice(n, n + m), odd)

    @property
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        return self._sides[:1]

    @property
    def summed_out(self) -> UnitBlock:
        return self._sides[1]

    @property
    def draws_in_rows(self) -> bool:
        return True

    def path_from(self, base: tuple[Floats, ...]) -> BlockPath:
        return BipartitePath(self, base) if self.has_bits else super().path_from(base)

    @property
    def _log2_states(self) -> list[float]:
        return [side.size * math.log2(side.unit.n_states or math.inf) for side in self._sides]

    @property
    def smaller_side(self) -> float:
        log2_states = min(self._log2_states)
        return math.ceil(log2_states) if log2_states < math.inf else math.inf

    @property
    def enumerated(self) -> "Bipartite":
        """The side with fewer states as the state, the other one summed out."""
        even, odd = self._log2_states
        if odd > even:
            return self
        blocks = tuple(
            WeightBlock(block.odd_layer, block.even_layer, np.ascontiguousarray(block.weights.T))
            for block in self.blocks
        )
        return Bipartite(
            self.odd_biases, self.even_biases, blocks, self.log_constant, self.odd_unit, self.even_unit
        )

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound, from the inputs that the most favourable odd bits give.

        With bits on both sides e·W·o is at most W⁺ (s e + (1 - s) o) for a share s, and independent units are left.
        """
        if self.odd_unit != BERNOULLI:
            return math.inf
        even, odd = np.zeros((2, self.n_even * self.even_unit.n_coupled)), np.zeros(self.n_odd)
        for rows, columns, block in self.placed_blocks:
            even[0, rows] += np.maximum(block.weights, 0.0).sum(axis=1)
            even[1, rows] -= np.maximum(-block.weights, 0.0).sum(axis=1)
            odd[columns] += np.maximum(block.weights, 0.0).sum(axis=0)
        if not self.has_bits:
            ends = self.even_unit.with_field(self.even_bias, even)
            most = self.even_unit.log_partition(ends).max(axis=0)  # convex in the inputs: largest at an end
            return float(most.sum() + sum_softplus(self.odd_bias)) + self.log_constant
        bounds = [
            sum_softplus(self.even_bias + s * even[0]) + sum_softplus(self.odd_bias + (1 - s) * odd)
            for s in (0.0, 0.5, 1.0)
        ]
        return float(min(bounds)) + self.log_constant

    # Inputs.

    def odd_field(self, even: States) -> Floats:
        """What even units contribute to the odd units' inputs: u(e) @ W (chain, coupled number)."""
        coupled = self.even_unit.coupled(even)
        field = np.zeros((len(even), self.n_odd * self.odd_unit.n_coupled))
        for rows, columns, block in self.placed_blocks:
            field[:, columns] += ordered_product(coupled[:, rows], block.strips)
        return field

    def even_field(self, odd: States) -> Floats:
        """What odd units contribute to the even units' inputs: u(o) @ W.T (chain, coupled number)."""
        coupled = self.odd_unit.coupled(odd)
        field = np.zeros((len(odd), self.n_even * self.even_unit.n_coupled))
        for rows, columns, block in self.placed_blocks:
            field[:, rows] += ordered_product(coupled[:, columns], block.weights.T)
        return field

    def odd_inputs(self, even: States) -> Floats:
        """Inputs (chain, odd unit, *input_shape) given even states."""
        return self.odd_unit.with_field(self.odd_bias, self.odd_field(even))

    def even_inputs(self, odd: States) -> Floats:
        """Inputs (chain, even unit, *input_shape) given odd states."""
        return self.even_unit.with_field(self.even_bias, self.even_field(odd))

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        n = self.n_even
        if block is self.summed_out:
            return self.odd_inputs(units[:, :n].astype(self.even_unit.dtype, copy=False))
        return self.even_inputs(units[:, n:].astype(self.odd_unit.dtype, copy=False))

    def odd_given_even(self, even: States) -> Floats:
        """Means (chain, odd unit) given even states, or rates of bits; probabilities of Potts units' states."""
        inputs = self.odd_inputs(even)
        return sigmoid(inputs) if self.has_bits else self.odd_unit.mean(inputs)

    def even_given_odd(self, odd: States) -> Floats:
        """The same (chain, even unit) given odd states."""
        inputs = self.even_inputs(odd)
        return sigmoid(inputs) if self.has_bits else self.even_unit.mean(inputs)

    # Probabilities.

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        even = units[:, : self.n_even]
        if self.has_bits:
            return ordered_product(even, self.even_bias)
        return self.even_unit.log_weight(even, self.even_bias).sum(axis=1)

    def log_f(self, state: States) -> Floats:
        if not self.has_bits:
            return super().log_f(state)
        log_f = ordered_product(state, self.even_bias)
        log_f += sum_softplus(self.odd_field(state) + self.odd_bias)
        return log_f + self.log_constant

    def state_means(self, state: States, generator: np.random.Generator) -> NDArray[Any]:
        """Means of the even units given a draw of the odd side; real states as they are."""
        if not self.even_unit.is_discrete:
            return state  # means would have too small a variance
        uniforms = generator.random((len(state), self.n_odd))
        if self.has_bits:
            return self.even_given_odd(uniforms < self.odd_given_even(state))
        return self.even_given_odd(self.odd_unit.draw(self.odd_inputs(state), uniforms))

    def mean_field_bound(self, even: Floats, odd: Floats, n_given: int = 0) -> Floats:
        """Lower bound (example,) on log Z by independent bits with these rates: expected log f plus entropy.

        Of log f summed over the other units where the first `n_given` even units are states.
        """
        energy = ordered_product(even, self.even_bias)
        energy = energy + ((self.odd_field(even) + self.odd_bias) * odd).sum(axis=1)
        return energy + entropy(even[:, n_given:]) + entropy(odd) + self.log_constant


@dataclass(frozen=True, eq=False)
class BipartitePath(BlockPath):
    """A path to layers of bits, whose sums have the same bits however many chains there are."""

    target: Bipartite  # pyright: ignore[reportIncompatibleVariableOverride]

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
class Layers:
    """Weights (lower coupled number, upper coupled number) between neighbours, lowest first, and biases of layers.

    Biases are inputs (unit, *input_shape) without weights; `log_constant` is a part of log f that no state changes.
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    log_constant: float = 0.0

    def field(self, units: Sequence[Unit]) -> Bipartite:
        """Layers 0, 2, 4, … of these kinds of units on the even side, layers 1, 3, 5, … on the odd side."""
        own = in_bits(self, units)
        blocks = [
            WeightBlock((k + 1) // 2, k // 2, np.ascontiguousarray(w.T) if k % 2 else w)
            for k, w in enumerate(own.weights)
        ]
        even, odd = (BERNOULLI if unit.bit else unit for unit in units[:2])
        return Bipartite(own.biases[::2], own.biases[1::2], tuple(blocks), own.log_constant, even, odd)


def in_bits(layers: Layers, units: Sequence[Unit]) -> Layers:
    """The same log f with two-state units written for their bits: value = offset + scale · bit."""
    if all(unit == BERNOULLI for unit in units):
        return layers
    mapped = [unit.scale * bias for unit, bias in zip(units, layers.biases, strict=True)]
    constant = sum(unit.offset * float(bias.sum()) for unit, bias in zip(units, layers.biases, strict=True))
    scaled = []
    for k, (w, lower, upper) in enumerate(zip(layers.weights, units, units[1:], strict=False)):
        to_lower, to_upper = (
            lower.scale * upper.offset * w.sum(axis=1),
            upper.scale * lower.offset * w.sum(axis=0),
        )
        mapped[k] = lower.with_field(mapped[k], to_lower[np.newaxis])[0]
        mapped[k + 1] = upper.with_field(mapped[k + 1], to_upper[np.newaxis])[0]
        constant += lower.offset * upper.offset * float(w.sum())
        scaled.append(lower.scale * upper.scale * w)
    return Layers(tuple(scaled), tuple(mapped), layers.log_constant + constant)


class BipartiteModel(Model):
    """A model of layers of units, each coupled to its neighbours: an RBM or a DBM."""

    @property
    @abstractmethod
    def layers(self) -> Layers:
        """The parameters of all layers, visible first, as weights of coupled numbers and inputs."""

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.layers.biases))

    @property
    def n_visible(self) -> int:
        return self.layer_sizes[0]

    @property
    def support(self) -> Unit:
        return self.units[0]

    @cached_property
    def mrf(self) -> Bipartite:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.layers.field(self.units)

    @property
    def bipartite(self) -> Bipartite | None:
        return self.mrf if self.mrf.has_bits else None

    def visible_log_odds(self, state: States, uniforms: Uniforms) -> Floats:
        two = self.bipartite
        if two is None:
            return super().visible_log_odds(state, uniforms)
        # The odd layers are independent given the even ones, so the lowest can be drawn alone.
        rates = two.odd_given_even(state)[:, two.odd_slices[0]]
        odd = uniforms(rates.shape[1]) <= rates
        return ordered_product(odd, two.blocks[0].weights.T) + two.even_biases[0]

    def as_factors(self) -> Factors:
        if not all(unit.is_discrete for unit in self.units):
            return super().as_factors()
        return layered_factors(self.layers.weights, self.layers.biases, self.units)

    def state_of(self, units: NDArray[Any]) -> NDArray[Any]:
        """The layers v, h2, h4, … of all units (chain, unit), lowest layer first."""
        return np.concatenate(self.by_layer(units)[::2], axis=1)

    def base_inputs(self, layers: Sequence[Floats]) -> tuple[Floats, ...]:
        scaled = [unit.scale * bias for unit, bias in zip(self.units, layers, strict=True)]
        return np.concatenate(scaled[0::2]), np.concatenate(scaled[1::2])

    def uniform_layers(self) -> list[Floats]:
        """Inputs of every layer under which all states are equally probable.

        There is no such distribution of real numbers: their layers are those of the model without weights.
        """
        layers = zip(super().uniform_layers(), self.layers.biases, self.units, strict=True)
        return [uniform if unit.is_discrete else own for uniform, own, unit in layers]


def _slices(biases: tuple[Floats, ...], width: int) -> tuple[slice, ...]:
    edges = np.cumsum([0, *(width * len(b) for b in biases)]).tolist()
    return tuple(slice(low, high) for low, high in itertools.pairwise(edges))


def entropy(rates: Floats) -> Floats:
    """Entropy (row,) of independent bits with rates (row, unit)."""
    p, q = np.clip(rates, 1e-300, 1.0), np.clip(1 - rates, 1e-300, 1.0)
    return -(rates * log(p) + (1 - rates) * log(q)).sum(axis=1)
