"""An RBM whose visible units are Potts or Gaussian, in blocks: visible units are the state, hidden ones are summed out.

With u(v) the statistics of the visible units that are coupled (which state each Potts unit is in, the value of a
Gaussian one) and bits h for the hidden units,

    log f(v, h) = log weight of v under the biases + hidden_bias·h + u(v)·weights·h.
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
    """Visible units of one kind with biases (unit, *input_shape), and hidden bits with biases (unit,).

    The weights are (visible unit, coupled statistic, hidden unit): one statistic for each state of a Potts unit, one
    for a Gaussian unit, the first number of its input.
    """

    unit: Unit
    bias: Floats
    weights: Floats
    hidden_bias: Floats
    log_constant: float = 0.0

    @property
    def draws_in_rows(self) -> bool:
        """Both layers are drawn in whole vectors."""
        return True

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return self.weights.shape[0]

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return self.weights.shape[2]

    @cached_property
    def _layers(self) -> tuple[UnitBlock, UnitBlock]:
        n, m = self.n_visible, self.n_hidden
        return UnitBlock(self.unit, slice(0, n), (n,)), UnitBlock(BERNOULLI, slice(n, n + m), (m,))

    @property
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        """The visible units, one block."""
        return self._layers[:1]

    @property
    def summed_out(self) -> UnitBlock:
        """The hidden units."""
        return self._layers[1]

    @property
    def smaller_side(self) -> int:
        """Units of two states with as many states as the layer that has fewer."""
        if self.unit.n_states is None:
            return self.n_hidden
        return min(self.n_hidden, math.ceil(self.n_visible * math.log2(self.unit.n_states)))

    @property
    def enumerated(self) -> MarkovRandomField:
        """The hidden units as the state and the visible ones summed out, unless these have fewer states."""
        return HiddenState(self) if self.smaller_side == self.n_hidden else self

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound: every visible unit has the inputs, of all that hidden units can give, with most weight."""
        coupled = self.weights.shape[1]
        most = []
        for sign in (1.0, -1.0):
            inputs = self.bias.copy()
            inputs[:, :coupled] += sign * np.maximum(sign * self.weights, 0.0).sum(axis=2)
            most.append(self.unit.log_partition(inputs))  # convex in the inputs, so an end has most
        return float(np.maximum(*most).sum() + sum_softplus(self.hidden_bias)) + self.log_constant

    @cached_property
    def matrix(self) -> Floats:
        """Weights (coupled statistic of a visible unit, hidden unit)."""
        return self.weights.reshape(-1, self.n_hidden)

    @cached_property
    def _transposed(self) -> Floats:
        return np.ascontiguousarray(self.matrix.T)

    def statistics(self, visible: Bits) -> NDArray[Any]:
        """Coupled statistics (chain, statistic): one-hot states of Potts units, values of Gaussian ones."""
        if self.unit.n_states is None:
            return visible
        one_hot = visible[:, :, np.newaxis] == np.arange(self.unit.n_states, dtype=visible.dtype)
        return one_hot.reshape(len(visible), -1).astype(np.uint8)

    def hidden_inputs(self, visible: Bits) -> Floats:
        """Inputs (chain, hidden unit) given visible states."""
        return ordered_product(self.statistics(visible), self.matrix) + self.hidden_bias

    def visible_inputs(self, hidden: NDArray[Any]) -> Floats:
        """Inputs (chain, visible unit, *input_shape) given hidden bits."""
        n, coupled = self.weights.shape[:2]
        field = ordered_product(hidden, self._transposed).reshape(len(hidden), n, coupled)
        inputs = np.empty((len(hidden), *self.bias.shape))
        inputs[:] = self.bias
        inputs[:, :, :coupled] += field
        return inputs

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        """Inputs of one layer given the other."""
        if block is self.summed_out:
            return self.hidden_inputs(units[:, : self.n_visible])
        return self.visible_inputs(units[:, self.n_visible :])

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        """Log weights of the visible units under their biases."""
        return self.unit.log_weight(units[:, : self.n_visible], self.bias).sum(axis=1)

    def state_means(self, state: Bits, generator: np.random.Generator) -> NDArray[Any]:
        """Probabilities (chain, unit, state) of Potts units given drawn hidden ones; Gaussian states as they are."""
        if self.unit.n_states is None:
            return state  # means would have too small a variance
        uniforms = generator.random((len(state), self.n_hidden))
        return self.unit.mean(self.visible_inputs(BERNOULLI.draw(self.hidden_inputs(state), uniforms)))


@dataclass(frozen=True, eq=False)
class HiddenState(MarkovRandomField):
    """The same field with the hidden units as the state and the visible ones summed out, to enumerate."""

    field: TwoLayer

    @property
    def log_constant(self) -> float:  # type: ignore[override]
        """The constant of the field."""
        return self.field.log_constant

    @cached_property
    def _layers(self) -> tuple[UnitBlock, UnitBlock]:
        n, m = self.field.n_visible, self.field.n_hidden
        return UnitBlock(BERNOULLI, slice(0, m), (m,)), UnitBlock(self.field.unit, slice(m, m + n), (n,))

    @property
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        """The hidden units."""
        return self._layers[:1]

    @property
    def summed_out(self) -> UnitBlock:
        """The visible units."""
        return self._layers[1]

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        """Inputs of one layer given the other."""
        m = self.field.n_hidden
        if block is self.summed_out:
            return self.field.visible_inputs(units[:, :m])
        return self.field.hidden_inputs(units[:, m:].astype(self.field.unit.dtype))

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        """The hidden units' biases."""
        return ordered_product(units[:, : self.field.n_hidden], self.field.hidden_bias)


def with_hidden_bits(
    unit: Unit, bias: Floats, weights: Floats, hidden_bias: Floats, hidden: TwoState, log_constant: float
) -> TwoLayer:
    """The field of hidden units with values offset + scale · bit, written for their bits."""
    coupled = weights.shape[1]
    shifted = bias.copy()
    shifted[:, :coupled] += hidden.offset * weights.sum(axis=2)
    return TwoLayer(
        unit,
        shifted,
        hidden.scale * weights,
        hidden.scale * hidden_bias,
        log_constant + hidden.offset * float(hidden_bias.sum()),
    )
