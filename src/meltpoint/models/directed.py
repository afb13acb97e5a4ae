"""Directed layers of DBNs, and proposals of the first hidden layer: recognition, and mean field of the posterior.

Given v the units of h1 depend on each other, because p(v | h1) couples them, so there is no block move to anneal
with. The proposal for three samples of four is the fixed point of

    logit mu_i = g_i + (1/2 - mu_i) c_i

with g the gradient of log p(v | h1) + log f_top(h1) at the means and c_i its second derivative: to second order, the
difference that switching unit i on makes. Recognition keeps a quarter of the samples, and all samples have the mixture
as their proposal, so that weights never exceed four times those of recognition alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.kernels.importance import drawable
from meltpoint.kernels.ordered import ordered_product, strips_for_products
from meltpoint.kernels.sigmoid import sigmoid
from meltpoint.layers import Unit
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Bipartite, Layers, in_bits
from meltpoint.statistics.elementary import log, log1p, logit
from meltpoint.statistics.log_space import log_sum_exp

_EVERY = 4  # the samples 0, 4, 8, … are recognition's
_SWEEPS = 20
_CURVATURE_EVERY = 5  # sweeps: it changes slowly, and half of the work is its products
_DAMPING = 0.1
_ROWS = 64  # examples whose mean fields are computed together: their arrays stay in the cache
_LARGEST_INPUT = 6.0


@dataclass(frozen=True, eq=False)
class Directed:
    """One directed layer: p(lower | upper) = sigmoid(upper @ weights.T + visible_bias), and its recognition.

    The recognition distribution q(upper | lower) = sigmoid(lower @ weights + recognition_bias) uses the
    transpose of the same weights.
    """

    weights: Floats
    visible_bias: Floats
    recognition_bias: Floats

    def up(self, lower: NDArray[Any]) -> Floats:
        """Inputs (example, upper unit) of recognition."""
        return ordered_product(lower, self.weights) + self.recognition_bias

    def down(self, upper: NDArray[Any]) -> Floats:
        """Inputs (example, lower unit)."""
        return ordered_product(upper, self.weights.T) + self.visible_bias

    def astype(self, dtype: DTypeLike) -> "Directed":
        return Directed(
            *(own.astype(dtype) for own in (self.weights, self.visible_bias, self.recognition_bias))
        )

    def in_bits(self, units: Sequence[Unit]) -> "Directed":
        """The same conditional probabilities for the bits of (lower, upper) two-state units."""
        own = in_bits(Layers((self.weights,), (self.visible_bias, self.recognition_bias)), units)
        return Directed(own.weights[0], *own.biases)


def posterior_inputs(visible: States, layer: Directed, recognition: Floats, top: Bipartite) -> Floats:
    """Inputs (example, unit), that is logits of the rates, of the first hidden layer's approximate posterior.

    `layer` has p(v | h1); `recognition` (example, unit) is where the mean field starts.
    """
    # In float32: any proposal is valid.
    own, above_weights = layer.weights.astype(np.float32), top.blocks[0].weights.astype(np.float32)
    to_above, from_above, squares_above = map(
        strips_for_products, (above_weights, above_weights.T, (above_weights**2).T)
    )
    to_visible, from_visible, squares = map(strips_for_products, (own.T, own, own**2))
    own_bias, odd_bias = layer.visible_bias.astype(np.float32), top.odd_bias.astype(np.float32)
    even_bias = top.even_bias.astype(np.float32)
    refined = np.empty(recognition.shape)
    for low in range(0, len(visible), _ROWS):
        part = slice(low, low + _ROWS)
        given, inputs = visible[part].astype(np.float32), recognition[part].astype(np.float32)
        curvature = np.zeros_like(inputs)
        for sweep in range(_SWEEPS):
            rates = sigmoid(inputs)
            below = sigmoid(ordered_product(rates, to_visible) + own_bias)
            above = sigmoid(ordered_product(rates, to_above) + odd_bias)
            gradient = ordered_product(given - below, from_visible) + even_bias
            gradient += ordered_product(above, from_above)
            if sweep % _CURVATURE_EVERY == 0:
                curvature = ordered_product(above * (1 - above), squares_above)
                curvature -= ordered_product(below * (1 - below), squares)
            inputs = (1 - _DAMPING) * inputs + _DAMPING * (gradient + (0.5 - rates) * curvature)
        refined[part] = inputs
    return np.clip(refined, -_LARGEST_INPUT, _LARGEST_INPUT)


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
