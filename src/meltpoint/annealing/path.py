"""The path from the base distribution to the model: f_beta = f_0^(1-beta) · f_1^beta on the units (paper, Eq. 9).

The base f_0 is independent units, so its normaliser and its sampler are exact. Inputs of units are linear in beta. The
target's constant is left out of every f_beta.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.ordered import ordered_product
from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.layers.bernoulli import softplus
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.mrf import MarkovRandomField


@dataclass(frozen=True, eq=False)
class AnnealingPath:
    """A target, and the inputs of the base's independent units: one array for each of the target's unit blocks."""

    target: MarkovRandomField
    base: tuple[Floats, ...]

    @property
    def log_z_base(self) -> float:
        """Log normaliser of the base distribution over all units, exact."""
        return sum(
            float(block.unit.log_partition(inputs).sum())
            for block, inputs in zip(self.target.unit_blocks, self.base, strict=True)
        )

    def inputs(self, beta: float, k: int, units: NDArray[Any]) -> Floats:
        """Inputs (chain, unit of block k, *input_shape) at beta given all other units (chain, unit)."""
        return (1 - beta) * self.base[k] + beta * self.target.inputs(self.target.unit_blocks[k], units)

    def log_f(self, beta: float, state: Bits) -> Floats:
        """Log unnormalised probability (chain,) of states at beta; what is summed out is summed out."""
        units = self.target.with_summed_out(state)
        log_f = beta * self.target.log_f_of_state(units)
        for block, inputs in zip(self.target.state_blocks, self.base, strict=False):
            log_f = log_f + (1 - beta) * block.unit.log_weight(state[:, block.columns], inputs).sum(axis=1)
        if self.target.summed_out is not None:
            inputs = self.inputs(beta, len(self.target.state_blocks), units)
            log_f = log_f + self.target.summed_out.unit.log_partition(inputs).sum(axis=1)
        return log_f

    def log_prob_base(self, states: Bits) -> Floats:
        """Log probability (chain,) under the base of the leading units of the state (chain, leading unit)."""
        n = states.shape[1]
        state = np.zeros((len(states), self.target.n_state), self.target.dtype)
        state[:, :n] = states
        log_prob = np.zeros(state.shape)
        for block, inputs in zip(self.target.state_blocks, self.base, strict=False):
            log_weight = block.unit.log_weight(state[:, block.columns], inputs)
            log_prob[:, block.columns] = log_weight - block.unit.log_partition(inputs)
        return log_prob[:, :n].sum(axis=1)


@dataclass(frozen=True, eq=False)
class TwoSidedPath(AnnealingPath):
    """A path to Bernoulli units on two sides, whose sums have the same bits however many chains there are."""

    target: Bipartite
    base: tuple[Floats, Floats]

    @property
    def base_even(self) -> Floats:
        """Inputs (even unit,) in the base."""
        return self.base[0]

    @property
    def base_odd(self) -> Floats:
        """Inputs (odd unit,) in the base."""
        return self.base[1]

    def even_bias(self, beta: float) -> Floats:
        """Biases (even unit,) at beta."""
        return self.base_even + beta * (self.target.even_bias - self.base_even)

    def odd_bias(self, beta: float) -> Floats:
        """Biases (odd unit,) at beta."""
        return self.base_odd + beta * (self.target.odd_bias - self.base_odd)

    def log_f(self, beta: float, state: Bits) -> Floats:
        """Log unnormalised probability (chain,) of even states at beta, the odd side summed out."""
        return ordered_product(state, self.even_bias(beta)) + self.odd_log_f(beta, state)

    def odd_log_f(self, beta: float, state: Bits) -> Floats:
        """The odd units' part (chain,) of it."""
        two = self.target
        field = np.zeros((len(state), two.n_odd))
        for rows, columns, weights in two.placed_weights:
            field[:, columns] += ordered_product(state[:, rows], weights)
        return sum_softplus(beta * field + self.odd_bias(beta))

    def log_prob_base(self, states: Bits) -> Floats:
        """Log probability (chain,) under the base of the leading even units (chain, leading unit)."""
        inputs = self.base_even[: states.shape[1]]
        return ordered_product(states, inputs) - softplus(inputs).sum()


def path_between(target: MarkovRandomField, base: tuple[Floats, ...]) -> AnnealingPath:
    """The path from independent units with these inputs, block by block, to a target."""
    if target.bipartite is not None:
        even, odd = base
        return TwoSidedPath(target.bipartite, (even, odd))
    return AnnealingPath(target, base)
