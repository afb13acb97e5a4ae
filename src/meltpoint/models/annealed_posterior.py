"""Annealed weights of a DBN's hidden layers given visible ones, unbiased for f(v), from all codes that a search finds.

The moves are Metropolis-Hastings: all units may be flipped at once, each with the probability

    sigmoid(d_i / 2 - penalty),    d_i = s_i g_i + c_i / 2,    s_i = 1 - 2 h_i,

where d_i is the change of log f by flipping unit i to second order (g its gradient, c its curvature, which is taken
once at the means of the base) and the penalty is drawn anew for each move. Chains go from a base q to f(v, h):
log f_beta = (1 - beta) log q + beta log f, and each has E[weight] = f(v) for any number of moves.

The base is a mixture of independent units around several codes, and its density is that of the whole mixture, so that
the masses of codes add up. A single code's chains would miss another code in silence: recognition may know one of two.
Codes are mean fields of the posterior, started from recognition, from mean-field fixed points of the top RBM that fit
v, and from states of chains that were annealed from independent fair units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Draws, GeneratorDraws, Segment
from meltpoint.annealing.path import Path, anneal_reference
from meltpoint.kernels.ordered import ordered_product
from meltpoint.kernels.sigmoid import sigmoid, sum_softplus
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import entropy
from meltpoint.models.posterior import LARGEST_INPUT, Posterior, Singles
from meltpoint.statistics.elementary import exp, log, logit
from meltpoint.statistics.log_space import log_mean_exp, log_sum_exp

CHAINS, STEPS = 8, 200
"""Chains of an example, and the steps of each."""
_PENALTIES = 1.0, 4.0  # on flipping: few flips are accepted more often
_UNITS_AT_ONCE = 1_000_000

_POINTS, _SWEEPS = 128, 30  # starts of the top RBM's mean field, for all examples
_FITTING = 12  # of its fixed points, for an example
_HEATED_CHAINS, _HEATED_STEPS = 4, 50
_SAME = 0.1  # mean distance of rates up to which two codes are one
_MOST_CODES = 4
_DRAWS = 4  # of a code, to estimate its mass
_TEMPERATURE = 2.0  # of the shares: masses from few draws are off by nats
_LEAST_SHARE = 0.02  # less would hardly start one of the chains


def annealed_log_weights(
    posterior: Posterior,
    visible: States,
    rng: np.random.Generator,
    *,
    chains: int = CHAINS,
    steps: int = STEPS,
) -> Floats:
    """Log weights (example, chain), each unbiased for f(v) but for its constant, of visible states (example, unit)."""
    codes = codes_of_top(posterior, rng)
    rows, found = max(1, _UNITS_AT_ONCE // (chains * codes.shape[1])), []
    for low in range(0, len(visible), rows):
        part = visible[low : low + rows]
        base = find_base(posterior, part, codes, rng)
        found.append(anneal(posterior, part, base, chains, steps, rng)[1])
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class HiddenBase:
    """A mixture of independent hidden units for each example: inputs (example, code, unit), shares (example, code)."""

    inputs: Singles
    shares: Floats

    @cached_property
    def _log_constants(self) -> Floats:
        return log(self.shares) - sum_softplus(self.inputs)

    def log_joint(self, states: Singles) -> Floats:
        """Log probability (example, chain, code) of a code and states (example, chain, unit)."""
        sums = [
            (states * own[:, np.newaxis]).sum(axis=2, dtype=np.float64) for own in self.inputs.swapaxes(0, 1)
        ]
        return np.stack(sums, axis=2) + self._log_constants[:, np.newaxis]

    def draw(self, chains: int, draws: Draws) -> Singles:
        """States (chain, unit), with so many chains for each example."""
        edges = np.repeat(np.cumsum(self.shares, axis=1)[:, :-1], chains, axis=0)
        code = (draws.uniforms(1) > edges).sum(axis=1)
        inputs = self.inputs[np.repeat(np.arange(len(self.inputs)), chains), code]
        return (draws.uniforms(inputs.shape[1]) <= sigmoid(inputs)).astype(np.float32)

    def mean(self, values: Singles, responsibilities: Floats) -> Singles:
        """What codes have (example, code, unit), averaged (chain, unit) by responsibilities (example, chain, code)."""
        parts = np.moveaxis(responsibilities.astype(np.float32), 2, 0)[..., np.newaxis]
        terms = (part * own[:, np.newaxis] for part, own in zip(parts, values.swapaxes(0, 1), strict=True))
        mean: Any = sum(terms)
        return mean.reshape(-1, mean.shape[2])


# The search for codes.


def codes_of_top(posterior: Posterior, rng: np.random.Generator) -> Singles:
    """Rates (code, hidden unit): fixed points of the top RBM's mean field, and the means of the layers below them."""
    top, half = posterior.top, _POINTS // 2
    corners = [
        rng.random((half, size)) < np.linspace(0, 1, half)[:, np.newaxis] for size in top.weights.shape
    ]
    lower = np.concatenate([corners[0].astype(np.float32), sigmoid(top.down(corners[1]))])
    for _ in range(_SWEEPS):
        lower = sigmoid(top.down(sigmoid(top.up(lower))))
    hidden = [lower[_apart(lower, range(_POINTS), _POINTS)]]
    for layer in reversed(posterior.directed[1:]):
        hidden.insert(0, sigmoid(layer.down(hidden[0])))
    return np.concatenate(hidden, axis=1)


def find_base(posterior: Posterior, visible: States, codes: Singles, rng: np.random.Generator) -> HiddenBase:
    """The mixture of the codes with the largest masses, of those that the search finds for each example."""
    inputs = _mean_fields(posterior, visible, codes, rng)
    rates, masses = sigmoid(inputs), _masses(posterior, visible, inputs, rng)
    counted = np.full_like(masses, -np.inf)
    for k, order in enumerate(np.argsort(-masses, axis=1, kind="stable")):
        # Masses are noisy: of codes that are nearly the same, the one from recognition is the best on average.
        kept = _apart(rates[k], [0, *order], _MOST_CODES)
        counted[k, kept] = masses[k, kept]
    shares = exp((counted - counted.max(axis=1, keepdims=True)) / _TEMPERATURE)
    shares[shares < _LEAST_SHARE * shares.sum(axis=1, keepdims=True)] = 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    largest = np.argsort(-shares, axis=1, kind="stable")[:, : np.count_nonzero(shares, axis=1).max()]
    rows = np.arange(len(inputs))[:, np.newaxis]
    return HiddenBase(inputs[rows, largest], shares[rows, largest])


def _mean_fields(posterior: Posterior, visible: States, codes: Singles, rng: np.random.Generator) -> Singles:
    """Inputs (example, code, unit) of mean fields, first the one from recognition, and last recognition's own."""
    recognised = posterior.recognised(visible)
    examples, units = recognised.shape
    fair = HiddenBase(np.zeros((examples, 1, units), np.float32), np.ones((examples, 1)))
    heated = anneal(posterior, visible, fair, _HEATED_CHAINS, _HEATED_STEPS, rng)[0]
    fitting = np.argsort(-_fit(posterior, visible, codes), axis=1, kind="stable")[:, :_FITTING]
    rates = np.concatenate([codes[fitting], heated.reshape(examples, -1, units)], axis=1)
    starts = np.concatenate([recognised[:, np.newaxis], logit(np.clip(rates, 1e-6, 1 - 1e-6))], axis=1)
    starts = np.clip(starts, -LARGEST_INPUT, LARGEST_INPUT)
    given = np.repeat(visible, starts.shape[1], axis=0)
    fields = posterior.mean_field(given, starts.reshape(-1, units)).reshape(starts.shape)
    return np.concatenate([fields, starts[:, :1]], axis=1).astype(np.float32)


def _apart(rates: Singles, ranked: Sequence[int] | NDArray[np.integer], count: int) -> list[int]:
    """The first `count` rows in this order that differ from all before them."""
    kept: list[int] = []
    for k in ranked:
        if len(kept) < count and (np.abs(rates[kept] - rates[k]).mean(axis=1) >= _SAME).all():
            kept.append(int(k))
    return kept


def _fit(posterior: Posterior, visible: States, codes: Singles) -> Floats:
    """Roughly the log mass (example, code) of hidden states around each code."""
    driven = posterior.drive(visible[:1].astype(np.float32), codes)
    lowest, highest, above = driven.inputs[0], driven.layers[-1], driven.inputs[-1]
    top = (highest * posterior.top.visible_bias).sum(axis=1, dtype=np.float64) + sum_softplus(above)
    return (
        ordered_product(visible, lowest.T) - sum_softplus(lowest) + top + entropy(highest.astype(np.float64))
    )


def _masses(posterior: Posterior, visible: States, inputs: Singles, rng: np.random.Generator) -> Floats:
    """Log masses (example, code) by importance sampling from the independent units of each code, inputs (…, unit)."""
    own = HiddenBase(inputs.reshape(-1, 1, inputs.shape[2]), np.ones((inputs.shape[0] * inputs.shape[1], 1)))
    given = np.repeat(visible.astype(np.float32), inputs.shape[1], axis=0)
    draws, log_weights = GeneratorDraws([rng], len(given)), []
    for _ in range(_DRAWS):
        states = own.draw(1, draws)
        log_weights.append(
            posterior.log_f(posterior.drive(given, states)) - own.log_joint(states[:, np.newaxis])[:, 0, 0]
        )
    return np.asarray(log_mean_exp(np.stack(log_weights), axis=0)).reshape(inputs.shape[:2])


# Annealing.


def anneal(
    posterior: Posterior, visible: States, base: HiddenBase, chains: int, steps: int, rng: np.random.Generator
) -> tuple[Singles, Floats]:
    """Final states (chain, unit) and log weights (example, chain)."""
    path = PosteriorPath(posterior, visible, base, chains)
    draws, unused = GeneratorDraws([rng], len(visible) * chains), np.empty((len(visible) * chains, 0))
    states, log_weights = anneal_reference(path, Segment(np.linspace(0.0, 1.0, steps + 1)), unused, draws)
    return states, log_weights.reshape(len(visible), chains)


class Evaluated(NamedTuple):
    """Hidden bits (chain, unit) with log f (chain,), log q (chain,), and what moves from them are proposed by.

    That is the gradient of log f, that of log q, and the curvature of log f (chain, unit).
    """

    state: Singles
    log_f: Floats
    log_base: Floats
    gradient: Singles
    base_gradient: Singles
    curvature: Singles


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
    """From a mixture of independent hidden units q, given visible ones, to f(v, h), with several chains an example."""

    transition = FlipManyUnits()
    dtype = np.dtype(np.float32)

    def __init__(self, posterior: Posterior, visible: States, base: HiddenBase, chains: int) -> None:
        self._posterior, self._base, self._chains = posterior, base, chains
        examples, codes, self.n_state = base.inputs.shape
        given = visible.astype(np.float32)
        self._given = np.repeat(given, chains, axis=0)
        rates = sigmoid(base.inputs.reshape(-1, self.n_state))
        curvature = posterior.curvature(posterior.drive(np.repeat(given, codes, axis=0), rates))
        self._curvature = curvature.reshape(examples, codes, self.n_state)
        self._last: Evaluated | None = None

    def draw_base(self, state: Singles, draws: Draws, clamped: NDArray[np.bool_] | None = None) -> Singles:
        return self._base.draw(self._chains, draws)

    def log_prob_base(self, states: States) -> Floats:
        joint = self._base.log_joint(states.reshape(-1, self._chains, self.n_state))
        return np.asarray(log_sum_exp(joint, axis=2)).reshape(-1)

    def log_f(self, s: float, state: Singles) -> Floats:
        now = self.at(state)
        return (1 - s) * now.log_base + s * now.log_f

    def at(self, state: Singles) -> Evaluated:
        """All of these states; those that were asked for last are not evaluated again."""
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
        driven = self._posterior.drive(self._given, state)
        joint = self._base.log_joint(state.reshape(-1, self._chains, self.n_state))
        log_base = np.asarray(log_sum_exp(joint, axis=2))
        responsibilities = exp(joint - log_base[:, :, np.newaxis])
        return Evaluated(
            state,
            self._posterior.log_f(driven),
            log_base.reshape(-1),
            self._posterior.gradient(driven),
            self._base.mean(self._base.inputs, responsibilities),
            self._base.mean(self._curvature, responsibilities),
        )

    def flip_inputs(self, chains: Evaluated, s: float, penalty: Singles) -> Singles:
        """Log odds (chain, unit) with which each unit is flipped."""
        sign: Singles = 1 - 2 * chains.state
        change = sign * chains.gradient + chains.curvature / 2
        part = np.float32(s)
        return (((1 - part) * sign * chains.base_gradient + part * change) / 2 - penalty).astype(
            np.float32, copy=False
        )


def _log_flips(flipped: NDArray[np.bool_], log_odds: Singles) -> Floats:
    """Log probability (chain,) of flipping these units and no others."""
    return np.where(flipped, log_odds, 0).sum(axis=1, dtype=np.float64) - sum_softplus(log_odds)
