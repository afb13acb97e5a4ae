"""Annealed importance sampling of a DBN's hidden layers given visible ones: weights that are unbiased for f(v).

Given v the units of a layer depend on each other, because p(v | h1) couples them, so there is no block move. The
moves are Metropolis-Hastings: all units may be flipped at once, each with the probability

    sigmoid(d_i / 2 - penalty),    d_i = s_i g_i + c_i / 2,    s_i = 1 - 2 h_i,

where d_i is the change of log f by flipping unit i to second order (g its gradient, c its curvature, which is taken
once at the means of the base) and the penalty is drawn anew for each move. Chains go from independent units q, a mean
field, to f(v, h): log f_beta = (1 - beta) log q + beta log f, and each has E[weight] = f(v) for any number of moves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Draws, GeneratorDraws, Segment
from meltpoint.annealing.path import Path, anneal_reference
from meltpoint.kernels.ordered import ordered_product, strips_for_products
from meltpoint.kernels.sigmoid import sigmoid, sum_softplus
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.directed import Directed
from meltpoint.statistics.elementary import log

CHAINS, STEPS = 8, 200
"""Chains of an example, and the steps of each."""

_PENALTIES = 1.0, 4.0  # on flipping: few flips are accepted more often
_LARGEST_INPUT = 6.0  # of the base's units: chains must be able to begin anywhere
_UNITS_AT_ONCE = 1_000_000

Singles = NDArray[np.float32]


def annealed_log_weights(
    layers: Sequence[Directed],
    top: Bipartite,
    visible: States,
    inputs: Sequence[Floats],
    rng: np.random.Generator,
    *,
    chains: int = CHAINS,
    steps: int = STEPS,
) -> Floats:
    """Log weights (example, chain), each unbiased for f(v), of visible states (example, unit).

    `inputs` (example, unit) are those of the independent units that chains start from, for each hidden layer.
    """
    rows = max(1, _UNITS_AT_ONCE // (chains * sum(part.shape[1] for part in inputs)))
    segment, found = Segment(np.linspace(0.0, 1.0, steps + 1)), []
    for low in range(0, len(visible), rows):
        part = visible[low : low + rows]
        path = PosteriorPath(layers, top, part, [own[low : low + rows] for own in inputs], chains)
        draws = GeneratorDraws([rng], len(part) * chains)
        found.append(anneal_reference(path, segment, path.inputs, draws)[1])
    return np.concatenate(found).reshape(len(visible), chains) + top.log_constant


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
        top: Bipartite,
        visible: States,
        base: Sequence[Floats],
        chains: int,
    ) -> None:
        clipped = np.clip(np.concatenate(base, axis=1), -_LARGEST_INPUT, _LARGEST_INPUT)
        self.inputs: Singles = np.repeat(clipped.astype(np.float32), chains, axis=0)
        self.n_state = self.inputs.shape[1]
        self._given = np.repeat(visible.astype(np.float32), chains, axis=0)
        self._edges = np.cumsum([part.shape[1] for part in base])[:-1]
        weights = [layer.weights.astype(np.float32) for layer in layers]
        self._down, self._up = (
            [strips_for_products(w) for w in each] for each in ([w.T for w in weights], weights)
        )
        self._biases = [layer.visible_bias.astype(np.float32) for layer in layers]
        above = top.blocks[0].weights.astype(np.float32)
        self._to_above, self._from_above = strips_for_products(above), strips_for_products(above.T)
        self._top_bias, self._odd_bias = top.even_bias.astype(np.float32), top.odd_bias.astype(np.float32)
        self._log_normaliser = sum_softplus(self.inputs)
        self._curve = self._curvature(sigmoid(self.inputs), weights, above)
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
        for down, up, bias, upper in zip(self._down, self._up, self._biases, hidden, strict=True):
            inputs = ordered_product(upper, down) + bias
            log_f += (lower * inputs).sum(axis=1, dtype=np.float64) - sum_softplus(inputs)
            if gradients:
                gradients[-1] += inputs  # the layer below is drawn with these
            gradients.append(ordered_product(lower - sigmoid(inputs), up))
            lower = upper
        inputs = ordered_product(lower, self._to_above) + self._odd_bias
        log_f += (lower * self._top_bias).sum(axis=1, dtype=np.float64) + sum_softplus(inputs)
        gradients[-1] += self._top_bias + ordered_product(sigmoid(inputs), self._from_above)
        return Evaluated(state, log_f, np.concatenate(gradients, axis=1), self.log_prob_base(state))

    def flip_inputs(self, chains: Evaluated, s: float, penalty: Singles) -> Singles:
        """Log odds (chain, unit) with which each unit is flipped."""
        sign: Singles = 1 - 2 * chains.state
        change = sign * chains.gradient + self._curve / 2
        part = np.float32(s)
        return (((1 - part) * sign * self.inputs + part * change) / 2 - penalty).astype(
            np.float32, copy=False
        )

    def _curvature(self, rates: Singles, weights: Sequence[Singles], to_above: Singles) -> Singles:
        """Second derivatives (chain, unit) of log f at rates."""
        parts = []
        hidden = np.split(rates, self._edges, axis=1)
        for own, down, bias, upper in zip(weights, self._down, self._biases, hidden, strict=True):
            below = sigmoid(ordered_product(upper, down) + bias)
            parts.append(-ordered_product(below * (1 - below), own**2))
        above = sigmoid(ordered_product(hidden[-1], self._to_above) + self._odd_bias)
        parts[-1] += ordered_product(above * (1 - above), (to_above**2).T)
        return np.concatenate(parts, axis=1)


def _log_flips(flipped: NDArray[np.bool_], log_odds: Singles) -> Floats:
    """Log probability (chain,) of flipping these units and no others."""
    return np.where(flipped, log_odds, 0).sum(axis=1, dtype=np.float64) - sum_softplus(log_odds)
