"""CSL, the conservative sampling-based log-likelihood (Bengio, Yao and Cho 2013), which the paper compares with.

Gibbs chains give samples h of the lowest hidden layer, and p(v) = E[p(v | h)] is estimated by their mean. The
estimate of log p(v) errs on the low side, by tens of nats where the examples are many and the samples are not:
a test example needs a sample that explains it.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from meltpoint.annealing.anneal import Leg, anneal
from meltpoint.annealing.base import Base, family_of, uniform
from meltpoint.annealing.precision import prepare
from meltpoint.annealing.schedule import as_betas
from meltpoint.annealing.streams import chain_generators, next_uniforms
from meltpoint.errors import Progress
from meltpoint.estimators.checks import check_count
from meltpoint.estimators.reverse import LogProb
from meltpoint.models import Model
from meltpoint.models.bipartite import sum_softplus
from meltpoint.models.checks import Bits, Floats, binary
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from meltpoint.randomness import Purpose
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp

EVERY = 20
"""Moves from one sample to the next; those in between are much the same. (The authors of CSL take 100.)"""

_BURN_IN = 10  # one move in so many is spent on annealing from the base to the model
_ROWS = 1024  # chains whose samples are weighed at once

Uniforms: TypeAlias = Callable[[int], NDArray[np.floating]]
"""Gives uniform numbers (chain, so many) from the chains' own streams."""


def csl_log_prob(
    model: Model,
    x: ArrayLike,
    *,
    base: Base | None = None,
    steps: int = 3000,
    chains: int = 1000,
    every: int = EVERY,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> LogProb:
    """Estimate log p(v) of every example from below, as the mean of p(v | h) over samples h of the model.

    Each chain makes `steps` Gibbs moves, as an AIS chain with so many steps does: the first tenth while it is
    annealed from the base, the others in the model, and one sample is taken at every `every`-th of these. The
    log weights (example, chain) of the result are each chain's own estimates, and memory does not grow with the
    number of samples. The estimate is conservative as far as the chains are samples of the model.

    >>> rbm = RBM([[1.0, -2.0], [0.5, 1.0]], [0.0, 0.1], [0.2, 0.0])
    >>> csl_log_prob(rbm, [[0, 1], [1, 1]], steps=50, chains=10).values.shape
    (2,)
    """
    steps = check_count(steps, "steps", "as many as AIS takes, for the same number of Gibbs moves")
    chains = check_count(chains, "chains", "as many as AIS takes, for the same number of Gibbs moves")
    every = check_count(every, "every", f"{EVERY} are usual")
    bits = binary(x, "x", model.n_visible).astype(np.float64)
    family = family_of(model, base or uniform())
    burn_in = -(-steps // _BURN_IN)
    moves = min(every, max(1, steps - burn_in))
    samples = max(1, (steps - burn_in) // moves)
    walk = prepare(family, "float32")
    numbers = np.arange(chains)
    streams = chain_generators(seed, Purpose.CSL, _keys(numbers, 0))
    state = np.zeros((chains, family.target.n_even), np.uint8)
    sums = np.full((len(bits), chains), -np.inf)
    for k in range(samples):
        legs = [Leg(np.ones(moves + 1))] if k else [Leg(as_betas(burn_in)), Leg(np.ones(moves + 1))]
        run = anneal(
            family,
            legs,
            state,
            chain_generators(seed, Purpose.CSL, _keys(numbers, k + 1)),
            walk=walk,
            threads=threads,
        )
        if not run.finished.all():
            raise KeyboardInterrupt
        state = run.state
        for low in range(0, chains, _ROWS):
            part = slice(low, min(low + _ROWS, chains))
            field = _visible_field(
                model, state[part], lambda count, part=part: next_uniforms(streams[part], count)
            )
            np.logaddexp(sums[:, part], _log_prob_given(field, bits), out=sums[:, part])
        if progress:
            progress("CSL", float(k + 1), float(samples))
    log_weights = sums - np.log(samples)
    return LogProb(log_mean_exp(log_weights), log_mean_error(log_weights), log_weights)


def _keys(chains: NDArray[np.integer], k: int) -> NDArray[np.integer]:
    """Keys (chain, 2) of the chains' streams on their way to sample k; 0 is the stream of the hidden draws."""
    return np.stack([chains, np.full_like(chains, k)], axis=1)


def _visible_field(model: Model, state: Bits, uniforms: Uniforms) -> Floats:
    """Input (chain, visible unit) of the visible units, given a draw of the lowest hidden layer."""
    if isinstance(model, DBN) and model.directed:
        hidden: NDArray[Any] = state
        for layer in reversed(model.directed[1:]):
            rates = expit(hidden @ layer.weights.T + layer.visible_bias)
            hidden = uniforms(rates.shape[1]) <= rates
        return hidden @ model.directed[0].weights.T + model.directed[0].visible_bias
    mrf = model.top if isinstance(model, DBN) else model
    weights, bias = (
        (mrf.weights, mrf.visible_bias) if isinstance(mrf, RBM) else (mrf.weights[0], mrf.biases[0])
    )
    # The odd layers are independent given the even ones: the lowest can be drawn alone.
    rates = mrf.bipartite.odd_given_even(state)[:, : weights.shape[1]]
    return (uniforms(rates.shape[1]) <= rates) @ weights.T + bias


def _log_prob_given(field: Floats, bits: Floats) -> Floats:
    """log p(v | h) (example, chain): v·field - sum of softplus(field), a product for all pairs at once."""
    return bits @ field.T - sum_softplus(field)
