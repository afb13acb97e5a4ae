"""Directed layers of DBNs, and what is known of their hidden layers given visible ones.

Given v the units of a layer depend on each other, because p(v | h1) couples them, so there is no block move. Two
proposals of the first hidden layer are factorial: recognition, and mean field, the fixed point of

    logit mu_i = g_i + (1/2 - mu_i) c_i

with g the gradient of log f(v, h) at the means and c_i its second derivative: to second order, the difference that
switching unit i on makes. Recognition keeps a quarter of the samples, and all samples have the mixture as their
proposal, so that weights never exceed four times those of recognition alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.kernels.importance import drawable
from meltpoint.kernels.ordered import ordered_product, strips_for_products
from meltpoint.kernels.rows import Strips
from meltpoint.kernels.sigmoid import sigmoid, sum_softplus
from meltpoint.layers import Unit
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Layers, in_bits
from meltpoint.statistics.elementary import log, log1p, logit
from meltpoint.statistics.log_space import log_sum_exp

LARGEST_INPUT = 6.0  # of proposals: draws must be able to be anywhere

_EVERY = 4  # the samples 0, 4, 8, … are recognition's
_SWEEPS = 20
_CURVATURE_EVERY = 5  # sweeps: it changes slowly, and half of the work is its products
_DAMPING = 0.1
_ROWS = 64  # examples whose mean fields are computed together: their arrays stay in the cache

Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Directed:
    """One directed layer: p(lower | upper) = sigmoid(upper @ weights.T + visible_bias), and its recognition.

    The recognition distribution q(upper | lower) = sigmoid(lower @ weights + recognition_bias) uses the
    transpose of the same weights.
    """

    weights: Floats
    visible_bias: Floats
    recognition_bias: Floats

    @cached_property
    def _strips(self) -> tuple[Strips, Strips]:
        return strips_for_products(self.weights), strips_for_products(self.weights.T)

    def to_upper(self, lower: NDArray[Any]) -> Floats:
        """lower @ weights (example, upper unit)."""
        return ordered_product(lower, self._strips[0])

    def to_lower(self, upper: NDArray[Any]) -> Floats:
        """upper @ weights.T (example, lower unit)."""
        return ordered_product(upper, self._strips[1])

    def up(self, lower: NDArray[Any]) -> Floats:
        """Inputs (example, upper unit) of recognition."""
        return self.to_upper(lower) + self.recognition_bias

    def down(self, upper: NDArray[Any]) -> Floats:
        """Inputs (example, lower unit)."""
        return self.to_lower(upper) + self.visible_bias

    def astype(self, dtype: DTypeLike) -> "Directed":
        return Directed(
            *(own.astype(dtype) for own in (self.weights, self.visible_bias, self.recognition_bias))
        )

    @cached_property
    def squared(self) -> "Directed":
        """The layer with the squares of its weights."""
        return Directed(self.weights**2, self.visible_bias, self.recognition_bias)

    def in_bits(self, units: Sequence[Unit]) -> "Directed":
        """The same conditional probabilities for the bits of (lower, upper) two-state units."""
        own = in_bits(Layers((self.weights,), (self.visible_bias, self.recognition_bias)), units)
        return Directed(own.weights[0], *own.biases)


class Driven(NamedTuple):
    """Given and hidden layers, each (row, unit), and the inputs of what they drive.

    Those of each layer but the highest, which it is drawn with, and those of the top RBM's upper side.
    """

    layers: list[Singles]
    inputs: list[NDArray[Any]]


class Posterior:
    """Log f(v, h) of bits in all hidden layers, side by side as units (row, unit): its value and its derivatives.

    In float32: any proposal is valid, and any move that is accepted as it was proposed.
    """

    def __init__(self, layers: Sequence[Directed], top: Directed) -> None:
        self.directed, self.top = [layer.astype(np.float32) for layer in layers], top.astype(np.float32)
        self._edges = np.cumsum([layer.weights.shape[1] for layer in layers])[:-1]

    def drive(self, given: Singles, units: Singles) -> Driven:
        hidden = np.split(units, self._edges, axis=1)
        inputs = [layer.down(upper) for layer, upper in zip(self.directed, hidden, strict=True)]
        return Driven([given, *hidden], [*inputs, self.top.up(hidden[-1])])

    def log_f(self, driven: Driven) -> Floats:
        """Log f (row,) but for its constant."""
        *layers, highest = driven.layers
        log_f = (highest * self.top.visible_bias).sum(axis=1, dtype=np.float64) + sum_softplus(
            driven.inputs[-1]
        )
        for lower, inputs in zip(layers, driven.inputs, strict=False):
            log_f += (lower * inputs).sum(axis=1, dtype=np.float64) - sum_softplus(inputs)
        return log_f

    def gradient(self, driven: Driven) -> NDArray[Any]:
        """Derivatives (row, unit) of log f."""
        *below, above = map(sigmoid, driven.inputs)
        parts = [
            layer.to_upper(lower - rates)
            for layer, lower, rates in zip(self.directed, driven.layers, below, strict=False)
        ]
        for part, inputs in zip(parts, driven.inputs[1:-1], strict=False):
            part += inputs  # the layer is drawn with these
        parts[-1] += self.top.visible_bias
        parts[-1] += self.top.to_lower(above)
        return np.concatenate(parts, axis=1)

    def curvature(self, driven: Driven) -> NDArray[Any]:
        """Second derivatives (row, unit) of log f."""
        *below, above = (rates * (1 - rates) for rates in map(sigmoid, driven.inputs))
        parts = [-layer.squared.to_upper(v) for layer, v in zip(self.directed, below, strict=True)]
        parts[-1] += self.top.squared.to_lower(above)
        return np.concatenate(parts, axis=1)

    def recognised(self, visible: States) -> Floats:
        """Inputs (example, unit) of recognition, layer after layer at the means of the one below."""
        found, rates = [], visible
        for layer in self.directed:
            found.append(layer.up(rates))
            rates = sigmoid(found[-1])
        return np.concatenate(found, axis=1)

    def mean_field(self, visible: States, start: NDArray[np.floating]) -> Floats:
        """Inputs (example, unit), that is logits of the rates, of the approximate posterior, found from a start."""
        refined = np.empty(start.shape)
        for low in range(0, len(visible), _ROWS):
            part = slice(low, low + _ROWS)
            given, inputs = visible[part].astype(np.float32), start[part].astype(np.float32)
            curvature = np.zeros_like(inputs)
            for sweep in range(_SWEEPS):
                rates = sigmoid(inputs)
                driven = self.drive(given, rates)
                if sweep % _CURVATURE_EVERY == 0:
                    curvature = self.curvature(driven)
                target = self.gradient(driven) + (0.5 - rates) * curvature
                inputs = (1 - _DAMPING) * inputs + _DAMPING * target
            refined[part] = inputs
        return np.clip(refined, -LARGEST_INPUT, LARGEST_INPUT)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Two factorial proposals of the first hidden layer: recognition has every fourth sample."""

    rates: Floats  # (proposal, example, unit)
    inputs: Floats  # (example, unit, proposal): their logits
    proposals: NDArray[np.int64]  # (sample,)

    @classmethod
    def of(cls, recognition: Floats, refined: Floats, samples: int) -> "Mixture":
        """The proposals from the logits (example, unit) of recognition and mean field."""
        rates = drawable(sigmoid(np.stack([recognition, refined])))
        inputs = np.moveaxis(logit(rates), 0, 2)
        return cls(rates, inputs, np.where(np.arange(samples) % _EVERY == 0, 0, 1))

    def log_prob(self, sums: Floats) -> Floats:
        """Log probability (example, sample) in the mixture, from the sums (example, sample, proposal) of `inputs`."""
        off = log1p(-self.rates).sum(axis=2).T
        share = float(np.mean(self.proposals == 0))
        return log_sum_exp(sums + off[:, np.newaxis] + log(np.array([share, 1 - share])), axis=2)
