"""A better proposal than recognition for a DBN's first hidden layer: a mean field that looks at the posterior.

Given v the units of h1 depend on each other, because p(v | h1) couples them, so there is no block move to anneal
with. The proposal for three samples of four is the fixed point of

    logit mu_i = g_i + (1/2 - mu_i) c_i

with g the gradient of log p(v | h1) + log f_top(h1) at the means and c_i its second derivative: to second order, the
difference that switching unit i on makes. Recognition keeps a quarter of the samples, and all samples have the mixture
as their proposal, so that weights never exceed four times those of recognition alone.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from meltpoint.models.bipartite import Bipartite
from meltpoint.models.log_f import draw_given
from meltpoint.units.bernoulli import softplus
from meltpoint.units.unit import Bits, Floats

_EVERY = 4  # the samples 0, 4, 8, … are recognition's
_SWEEPS = 20
_DAMPING = 0.1
_LARGEST_INPUT = 6.0


def posterior_inputs(
    visible: Bits, weights: Floats, visible_bias: Floats, recognition: Floats, top: Bipartite
) -> Floats:
    """Inputs (example, unit), that is logits of the rates, of the first hidden layer's approximate posterior.

    `weights` (visible unit, unit) and `visible_bias` are those of p(v | h1); `recognition` (example, unit) is where the
    mean field starts.
    """
    above_weights = top.blocks[0].weights
    squares, above_squares = weights**2, (above_weights**2).T
    inputs = recognition
    for _ in range(_SWEEPS):
        rates = expit(inputs)
        below = expit(rates @ weights.T + visible_bias)
        above = expit(rates @ above_weights + top.odd_bias)
        gradient = (visible - below) @ weights + top.even_bias + above @ above_weights.T
        curvature = (above * (1 - above)) @ above_squares - (below * (1 - below)) @ squares
        inputs = (1 - _DAMPING) * inputs + _DAMPING * (gradient + (0.5 - rates) * curvature)
    return np.clip(inputs, -_LARGEST_INPUT, _LARGEST_INPUT)


def draw_mixture(
    recognition: Floats, refined: Floats, generators: list[np.random.Generator], samples: int
) -> tuple[NDArray[np.bool_], Floats]:
    """Units (example, sample, unit) of both proposals, and their log probability (example, sample) in the mixture."""
    of_recognition = np.arange(samples) % _EVERY == 0
    share = float(of_recognition.mean())
    choose = of_recognition[np.newaxis, :, np.newaxis]
    rates = expit(np.stack([recognition, refined]))[:, :, np.newaxis]
    hidden = draw_given(generators, np.where(choose, rates[0], rates[1]))
    # log q = h·inputs - sum of softplus(inputs), and the second term has no sample in it.
    inputs = np.stack([recognition, refined], axis=2)
    log_probs = np.matmul(hidden.astype(np.float64), inputs) - softplus(inputs).sum(axis=1)[:, np.newaxis]
    shares = np.array([_log(share), _log(1 - share)])
    return hidden, np.logaddexp.reduce(log_probs + shares, axis=2)


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf
