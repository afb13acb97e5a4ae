"""Directed layers of DBNs, and what is known of their hidden layers given visible ones.

Given v the units of a layer depend on each other, because p(v | h1) couples them, so there is no block move. Two
proposals of the first hidden layer are factorial: recognition, and mean field, the fixed point of

    logit mu_i = g_i + (1/2 - mu_i) c_i

with g the gradient of log p(v | h1) + log f_top(h1) at the means and c_i its second derivative: to second order, the
difference that switching unit i on makes. Recognition keeps a quarter of the samples, and all samples have the mixture
as their proposal, so that weights never exceed four times those of recognition alone.

Annealing gives weights that are unbiased for f(v). The moves are Metropolis-Hastings: all units may be flipped at once,
each with the probability

    sigmoid(d_i / 2 - penalty),    d_i = s_i g_i + c_i / 2,    s_i = 1 - 2 h_i,

where d_i is the change of log f by flipping unit i to second order (g its gradient, c its curvature, which is taken
once at the means of the base) and the penalty is drawn anew for each move. Chains go from independent units q, a mean
field, to f(v, h): log f_beta = (1 - beta) log q + beta log f, and each has E[weight] = f(v) for any number of moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.annealing.blocks import Draws, GeneratorDraws, Segment
from meltpoint.annealing.path import Path, anneal_reference
from meltpoint.kernels.importance import drawable
from meltpoint.kernels.ordered import ordered_product, strips_for_products
from meltpoint.kernels.rows import Strips
from meltpoint.kernels.sigmoid import sigmoid, sum_softplus
from meltpoint.layers import Unit
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Layers, in_bits
from meltpoint.statistics.elementary import log, log1p, logit
from meltpoint.statistics.log_space import log_sum_exp

_LARGEST_INPUT = 6.0  # of proposals and of the base's units: chains must be able to begin anywhere

_EVERY = 4  # the samples 0, 4, 8, … are recognition's
_SWEEPS = 20
_CURVATURE_EVERY = 5  # sweeps: it changes slowly, and half of the work is its products
_DAMPING = 0.1
_ROWS = 64  # examples whose mean fields are computed together: their arrays stay in the cache

CHAINS, STEPS = 8, 200
"""Chains of an example, and the steps of each."""
_PENALTIES = 1.0, 4.0  # on flipping: few flips are accepted more often
_UNITS_AT_ONCE = 1_000_000

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


def posterior_inputs(visible: States, layer: Directed, recognition: Floats, top: Directed) -> Floats:
    """Inputs (example, unit), that is logits of the rates, of the first hidden layer's approximate posterior.

    `layer` has p(v | h1), `top` the top RBM's weights and biases; `recognition` (example, unit) is where the mean field
    starts.
    """
    layer, top = layer.astype(np.float32), top.astype(np.float32)  # any proposal is valid
    refined = np.empty(recognition.shape)
    for low in range(0, len(visible), _ROWS):
        part = slice(low, low + _ROWS)
        given, inputs = visible[part].astype(np.float32), recognition[part].astype(np.float32)
        curvature = np.zeros_like(inputs)
        for sweep in range(_SWEEPS):
            rates = sigmoid(inputs)
            below, above = sigmoid(layer.down(rates)), sigmoid(top.up(rates))
            gradient = layer.to_upper(given - below) + top.visible_bias
            gradient += top.to_lower(above)
            if sweep % _CURVATURE_EVERY == 0:
                curvature = top.squared.to_lower(above * (1 - above))
                curvature -= layer.squared.to_upper(below * (1 - below))
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


def annealed_log_weights(
    layers: Sequence[Directed],
    top: Directed,
    visible: States,
    inputs: Sequence[Floats],
    rng: np.random.Generator,
    *,
    chains: int = CHAINS,
    steps: int = STEPS,
) -> Floats:
    """Log weights (example, chain), each unbiased for f(v) but for its constant, of visible states (example, unit).

    `inputs` (example, unit) are those of the independent units that chains start from, for each hidden layer.
    """
    rows = max(1, _UNITS_AT_ONCE // (chains * sum(part.shape[1] for part in inputs)))
    segment, found = Segment(np.linspace(0.0, 1.0, steps + 1)), []
    for low in range(0, len(visible), rows):
        part = visible[low : low + rows]
        path = PosteriorPath(layers, top, part, [own[low : low + rows] for own in inputs], chains)
        draws = GeneratorDraws([rng], len(part) * chains)
        found.append(anneal_reference(path, segment, path.inputs, draws)[1])
    return np.concatenate(found).reshape(len(visible), chains)


class Evaluated(NamedTuple):
    """Hidden bits (chain, unit) with log f (chain,), its gradient (chain, unit) and log q (chain,)."""

    state: Singles
    log_f: Floats
    gradient: Singles
    log_base: Floats


class FlipManyUnits:
    """The Metropolis-Hastings move of all units at once; it is reversible."""

    def reversed(self) -> "FlipManyUnits":
        return self

    def move(
        self,
        path: "PosteriorPath",
        s: float,
        state: Singles,
        draws: Draws,
        clamped: NDArray[np.bool_] | None = None,
    ) -> Singles:
        low, high = _PENALTIES
        now, penalty = path.at(state), (low + (high - low) * draws.uniforms(1)).astype(np.float32)
        there = path.flip_inputs(now, s, penalty)
        flipped = draws.uniforms(there.shape[1]) <= sigmoid(there)
        after = path.at(np.where(flipped, 1 - state, state))
        back = path.flip_inputs(after, s, penalty)
        ratio = (1 - s) * (after.log_base - now.log_base) + s * (after.log_f - now.log_f)
        ratio += _log_flips(flipped, back) - _log_flips(flipped, there)
        accepted = log(draws.uniforms(1)[:, 0]) <= ratio
        return path.take(now, after, accepted)


class PosteriorPath(Path):
    """From independent hidden units q, given visible ones, to f(v, h): examples with several chains each."""

    transition = FlipManyUnits()
    dtype = np.dtype(np.float32)

    def __init__(
        self,
        layers: Sequence[Directed],
        top: Directed,
        visible: States,
        base: Sequence[Floats],
        chains: int,
    ) -> None:
        clipped = np.clip(np.concatenate(base, axis=1), -_LARGEST_INPUT, _LARGEST_INPUT)
        self.inputs: Singles = np.repeat(clipped.astype(np.float32), chains, axis=0)
        self.n_state = self.inputs.shape[1]
        self._given = np.repeat(visible.astype(np.float32), chains, axis=0)
        self._edges = np.cumsum([part.shape[1] for part in base])[:-1]
        self._layers, self._top = [layer.astype(np.float32) for layer in layers], top.astype(np.float32)
        self._log_normaliser = sum_softplus(self.inputs)
        self._curve = self._curvature(sigmoid(self.inputs))
        self._last: Evaluated | None = None

    def draw_base(self, state: Singles, draws: Draws, clamped: NDArray[np.bool_] | None = None) -> Singles:
        return (draws.uniforms(self.n_state) <= sigmoid(self.inputs)).astype(np.float32)

    def log_prob_base(self, states: States) -> Floats:
        return (states * self.inputs).sum(axis=1, dtype=np.float64) - self._log_normaliser

    def log_f(self, s: float, state: Singles) -> Floats:
        now = self.at(state)
        return (1 - s) * now.log_base + s * now.log_f

    def at(self, state: Singles) -> Evaluated:
        """Log f and its gradient; the states that were asked for last are not evaluated again."""
        if self._last is None or self._last.state is not state:
            self._last = self._evaluate(state)
        return self._last

    def take(self, now: Evaluated, after: Evaluated, where: NDArray[np.bool_]) -> Singles:
        """States that are those after where a move was accepted (chain,), evaluated already."""
        merged = (
            np.where(where[:, np.newaxis] if b.ndim > 1 else where, b, a)
            for a, b in zip(now, after, strict=True)
        )
        self._last = Evaluated(*merged)
        return self._last.state

    def _evaluate(self, state: Singles) -> Evaluated:
        hidden = np.split(state, self._edges, axis=1)
        log_f, gradients, lower = np.zeros(len(state)), [], self._given
        for layer, upper in zip(self._layers, hidden, strict=True):
            inputs = layer.down(upper)
            log_f += (lower * inputs).sum(axis=1, dtype=np.float64) - sum_softplus(inputs)
            if gradients:
                gradients[-1] += inputs  # the layer below is drawn with these
            gradients.append(layer.to_upper(lower - sigmoid(inputs)))
            lower = upper
        inputs = self._top.up(lower)
        log_f += (lower * self._top.visible_bias).sum(axis=1, dtype=np.float64) + sum_softplus(inputs)
        gradients[-1] += self._top.visible_bias + self._top.to_lower(sigmoid(inputs))
        return Evaluated(state, log_f, np.concatenate(gradients, axis=1), self.log_prob_base(state))

    def flip_inputs(self, chains: Evaluated, s: float, penalty: Singles) -> Singles:
        """Log odds (chain, unit) with which each unit is flipped."""
        sign: Singles = 1 - 2 * chains.state
        change = sign * chains.gradient + self._curve / 2
        part = np.float32(s)
        return (((1 - part) * sign * self.inputs + part * change) / 2 - penalty).astype(
            np.float32, copy=False
        )

    def _curvature(self, rates: Singles) -> Singles:
        """Second derivatives (chain, unit) of log f at rates."""
        hidden, parts = np.split(rates, self._edges, axis=1), []
        for layer, upper in zip(self._layers, hidden, strict=True):
            below = sigmoid(layer.down(upper))
            parts.append(-layer.squared.to_upper(below * (1 - below)))
        above = sigmoid(self._top.up(hidden[-1]))
        parts[-1] += self._top.squared.to_lower(above * (1 - above))
        return np.concatenate(parts, axis=1)


def _log_flips(flipped: NDArray[np.bool_], log_odds: Singles) -> Floats:
    """Log probability (chain,) of flipping these units and no others."""
    return np.where(flipped, log_odds, 0).sum(axis=1, dtype=np.float64) - sum_softplus(log_odds)
