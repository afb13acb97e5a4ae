"""An RBM of any kinds of units, in blocks: visible units are the state, hidden ones are summed out.

With u(v) and u(h) the numbers of the units that weights multiply (which state each Potts unit is in, the values of
others),

    log f(v, h) = log weight of v under bias + log weight of h under hidden_bias + u(v)·weights·u(h).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import UnitBlock
from meltpoint.annealing.field import MarkovRandomField
from meltpoint.kernels.ordered import ordered_product
from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.layers import BERNOULLI, TwoState, Unit
from meltpoint.layers.unit import Bits, Floats


@dataclass(frozen=True, eq=False)
class TwoLayer(MarkovRandomField):
    """Visible and hidden units of one kind each with biases (unit, *input_shape).

    The weights are (visible unit, its coupled number, hidden unit · its coupled number).
    """

    unit: Unit
    bias: Floats
    weights: Floats
    hidden_bias: Floats
    log_constant: float = 0.0
    hidden: Unit = BERNOULLI

    @property
    def draws_in_rows(self) -> bool:
        return True

    @property
    def n_visible(self) -> int:
        return len(self.bias)

    @property
    def n_hidden(self) -> int:
        return len(self.hidden_bias)

    @cached_property
    def _layers(self) -> tuple[UnitBlock, UnitBlock]:
        n, m = self.n_visible, self.n_hidden
        return UnitBlock(self.unit, slice(0, n), (n,)), UnitBlock(self.hidden, slice(n, n + m), (m,))

    @property
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        return self._layers[:1]

    @property
    def summed_out(self) -> UnitBlock:
        return self._layers[1]

    @property
    def smaller_side(self) -> float:
        sides = [block.size * math.log2(block.unit.n_states or math.inf) for block in self._layers]
        return math.ceil(min(sides)) if min(sides) < math.inf else math.inf

    @property
    def enumerated(self) -> MarkovRandomField:
        """The layer with fewer states as the state, the other one summed out."""
        visible, hidden = (block.size * math.log2(block.unit.n_states or math.inf) for block in self._layers)
        if hidden > visible:
            return self
        weights = self._transposed.reshape(self.n_hidden, self.hidden.n_coupled, -1)
        return TwoLayer(self.hidden, self.hidden_bias, weights, self.bias, self.log_constant, self.unit)

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound: every visible unit has the inputs, of all that hidden bits can give, with most weight."""
        if self.hidden != BERNOULLI:
            return math.inf
        most = []
        for sign in (1.0, -1.0):
            field = sign * np.maximum(sign * self.weights, 0.0).sum(axis=2)
            inputs = self.unit.with_field(self.bias, field.reshape(1, -1))
            most.append(self.unit.log_partition(inputs))  # convex in the inputs, so an end has most
        return float(np.maximum(*most).sum() + sum_softplus(self.hidden_bias)) + self.log_constant

    @cached_property
    def matrix(self) -> Floats:
        """Weights (coupled number of a visible unit, coupled number of a hidden unit)."""
        return self.weights.reshape(-1, self.weights.shape[2])

    @cached_property
    def _transposed(self) -> Floats:
        return np.ascontiguousarray(self.matrix.T)

    def hidden_inputs(self, visible: Bits) -> Floats:
        """Inputs (chain, hidden unit, *input_shape) given visible states."""
        field = ordered_product(self.unit.coupled(visible), self.matrix)
        return self.hidden.with_field(self.hidden_bias, field)

    def visible_inputs(self, hidden: Bits) -> Floats:
        """Inputs (chain, visible unit, *input_shape) given hidden states."""
        field = ordered_product(self.hidden.coupled(hidden), self._transposed)
        return self.unit.with_field(self.bias, field)

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        n = self.n_visible
        if block is self.summed_out:
            return self.hidden_inputs(units[:, :n].astype(self.unit.dtype, copy=False))
        return self.visible_inputs(units[:, n:].astype(self.hidden.dtype, copy=False))

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        """Log weights of the visible units under their biases."""
        return self.unit.log_weight(units[:, : self.n_visible], self.bias).sum(axis=1)

    def state_means(self, state: Bits, generator: np.random.Generator) -> NDArray[Any]:
        """Probabilities (chain, unit, …) of visible states given drawn hidden ones; real states as they are."""
        if not self.unit.is_discrete:
            return state  # means would have too small a variance
        uniforms = generator.random((len(state), self.n_hidden))
        return self.unit.mean(self.visible_inputs(self.hidden.draw(self.hidden_inputs(state), uniforms)))


def with_hidden_bits(
    unit: Unit, bias: Floats, weights: Floats, hidden_bias: Floats, hidden: TwoState, log_constant: float
) -> TwoLayer:
    """The field of hidden units with values offset + scale · bit, written for their bits."""
    field = hidden.offset * weights.sum(axis=2)
    return TwoLayer(
        unit,
        unit.with_field(bias, field.reshape(1, -1))[0],
        hidden.scale * weights,
        hidden.scale * hidden_bias,
        log_constant + hidden.offset * float(hidden_bias.sum()),
    )
