"""log f of deep models from proposals that look at the posterior, and limits that cover the bias of such estimates.

log f(v) = log of the sum over hidden states h of f(v, h), estimated by a mean of weights, errs low: by about half their
relative variance divided by their number, and by more where a few states that no sample has found carry the sum.

A DBM's even hidden layers are annealed, with v clamped, from the mean-field posterior of each example to f(v, h): a
mean-field posterior sits in one mode, and annealing leaves it. A DBN's first hidden layer given v is no
bipartite field, because p(v | h1) couples its units, so there is no block move to anneal with; there the recognition
distribution is replaced, for three samples of four, by the fixed point of

    logit mu_i = g_i + (1/2 - mu_i) c_i

with g the gradient of log p(v | h1) + log f_top(h1) at the means and c_i its second derivative: to second order, the
difference that switching unit i on makes. The recognition keeps a quarter of the samples, and all samples have the
mixture as their proposal, so that weights never exceed four times those of recognition alone.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from meltpoint.models.bipartite import softplus, sum_softplus
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.log_f import log_bernoulli
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp

_STEPS = 25  # of annealing a DBM's posterior
_LEAST_RATE = 1e-3
_SWEEPS = 20
_DAMPING = 0.1
_LARGEST_INPUT = 6.0
_RECOGNITION = 0.25  # share of the samples
_LEAST_SAMPLES = 8
_FASTEST, _SLOWEST = 0.5, 0.85  # ratios of successive rises that are believed


@dataclass(frozen=True)
class MeanLogF:
    """The mean of log f over examples, its standard error, and the rise that ever more samples may bring.

    `rise` is infinite where there are too few samples to tell.
    """

    value: float
    stderr: float
    rise: float

    def limits(self, alpha: float) -> tuple[float, float]:
        """An interval for the true mean: twice the estimated rise is added above."""
        quantile = float(norm.ppf(1 - alpha / 4))
        return self.value - quantile * self.stderr, self.value + quantile * self.stderr + 2 * self.rise


def posterior_log_weights(
    model: DBM | DBN, visible: Bits, samples: int, rng: np.random.Generator, *, steps: int = _STEPS
) -> Floats:
    """Log weights (example, sample), each unbiased for f(v), of a DBM or a DBN with one directed layer."""
    if isinstance(model, DBM):
        return _annealed(model, visible, samples, steps, rng)
    return _weighted(model, visible, samples, rng)


def mean_log_f(log_weights: Floats) -> MeanLogF:
    """The mean of log f from log weights (example, sample), and how far it may still rise.

    The same weights in halves and in quarters give the mean for half and for a quarter of the samples. If each
    doubling makes the rise `ratio` times smaller, ratio / (1 - ratio) of the last one is still to come: all of it for
    a bias of 1 / samples, where the ratio is 1/2.

    >>> mean_log_f(np.zeros((5, 16)))
    MeanLogF(value=0.0, stderr=0.0, rise=0.0)
    """
    examples, samples = log_weights.shape
    if samples < _LEAST_SAMPLES:
        return MeanLogF(float(np.mean(log_mean_exp(log_weights))), math.nan, math.inf)
    whole, half, quarter = (_in_parts(log_weights, parts) for parts in (1, 2, 4))
    last, before = whole - half, half - quarter
    errors = log_mean_error(log_weights)
    noise = float(np.std(last, ddof=1)) / math.sqrt(examples) if examples > 1 else float(last[0])
    rise, earlier = float(np.mean(last)), float(np.mean(before))
    ratio = float(np.clip(rise / earlier, _FASTEST, _SLOWEST)) if earlier > 0 else _FASTEST
    return MeanLogF(
        float(np.mean(whole)),
        math.sqrt(float(np.mean(np.square(errors))) / examples),
        max(0.0, rise) * ratio / (1 - ratio) + noise,
    )


def posterior_inputs(model: DBN, visible: Bits) -> Floats:
    """Inputs (example, unit), that is logits of the rates, of the first hidden layer's approximate posterior."""
    (layer,) = model.directed
    weights, top = layer.weights, model.top
    inputs = visible @ weights + layer.recognition_bias
    squares, top_squares = weights**2, (top.weights**2).T
    for _ in range(_SWEEPS):
        rates = expit(inputs)
        below = expit(rates @ weights.T + layer.visible_bias)
        above = expit(rates @ top.weights + top.hidden_bias)
        gradient = (visible - below) @ weights + top.visible_bias + above @ top.weights.T
        curvature = (above * (1 - above)) @ top_squares - (below * (1 - below)) @ squares
        inputs = (1 - _DAMPING) * inputs + _DAMPING * (gradient + (0.5 - rates) * curvature)
    return np.clip(inputs, -_LARGEST_INPUT, _LARGEST_INPUT)


def _weighted(model: DBN, visible: Bits, samples: int, rng: np.random.Generator) -> Floats:
    """Importance weights (example, sample) of a DBN, in random order, from the mixture of both proposals."""
    (layer,) = model.directed
    recognition = visible @ layer.weights + layer.recognition_bias
    refined = posterior_inputs(model, visible)
    share = round(_RECOGNITION * samples) / samples
    mine = np.arange(samples) < round(_RECOGNITION * samples)
    mine = rng.permutation(mine)[np.newaxis, :, np.newaxis]
    inputs = np.where(mine, recognition[:, np.newaxis], refined[:, np.newaxis])
    hidden = rng.random(inputs.shape) < expit(inputs)
    proposal = np.logaddexp(
        _log(share) + log_bernoulli(hidden, recognition[:, np.newaxis] + np.zeros_like(inputs)),
        _log(1 - share) + log_bernoulli(hidden, refined[:, np.newaxis] + np.zeros_like(inputs)),
    )
    units = hidden.astype(np.float32)
    below = units @ layer.weights.T.astype(np.float32) + layer.visible_bias.astype(np.float32)
    above = units @ model.top.weights.astype(np.float32) + model.top.hidden_bias.astype(np.float32)
    given = log_bernoulli(np.broadcast_to(visible[:, np.newaxis].astype(np.bool_), below.shape), below)
    return given + hidden @ model.top.visible_bias + sum_softplus(above) - proposal


def _annealed(model: DBM, visible: Bits, samples: int, steps: int, rng: np.random.Generator) -> Floats:
    """AIS weights (example, sample) of a DBM's hidden layers with v clamped, from each example's mean field."""
    two, n_visible = model.bipartite, model.n_visible
    even, odd = (np.clip(rates, _LEAST_RATE, 1 - _LEAST_RATE) for rates in model.mean_field(visible))
    base_even, base_odd = logit(even[:, np.newaxis, n_visible:]), logit(odd[:, np.newaxis])
    bias = two.even_bias[n_visible:]
    basis = np.eye(two.n_even)[n_visible:]
    weights = two.odd_field(basis)  # (even hidden unit, odd unit)
    fixed = two.odd_field(np.pad(visible, ((0, 0), (0, len(basis))))) + two.odd_bias
    hidden = (rng.random((len(visible), samples, len(basis))) < expit(base_even)).astype(np.float64)
    log_weights = np.zeros((len(visible), samples))
    for low, high in zip(np.arange(steps) / steps, np.arange(1, steps + 1) / steps, strict=True):
        if low > 0:
            field = hidden @ weights + fixed[:, np.newaxis]
            units = rng.random(field.shape) < expit(low * field + (1 - low) * base_odd)
            inputs = low * (units @ weights.T + bias) + (1 - low) * base_even
            hidden = (rng.random(inputs.shape) < expit(inputs)).astype(np.float64)
        field = hidden @ weights + fixed[:, np.newaxis]
        log_weights += (high - low) * (hidden * (bias - base_even)).sum(axis=2)
        log_weights += sum_softplus(high * field + (1 - high) * base_odd)
        log_weights -= sum_softplus(low * field + (1 - low) * base_odd)
    log_base = softplus(base_even).sum(axis=2) + softplus(base_odd).sum(axis=2)
    return log_weights + log_base + (visible @ two.even_bias[:n_visible])[:, np.newaxis]


def _in_parts(log_weights: Floats, parts: int) -> Floats:
    """Log mean weights (example,) of parts of the samples, on average."""
    size = log_weights.shape[1] // parts
    cut = log_weights[:, : parts * size].reshape(len(log_weights), parts, size)
    return log_mean_exp(cut, axis=2).mean(axis=1)


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf
