"""log f of deep models against enumeration. Means are compared with 4.9 standard errors: false alarms 1e-6 each."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from meltpoint.estimators.posterior import mean_log_f, posterior_inputs, posterior_log_weights
from meltpoint.models.bipartite import sum_softplus
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM

SIGMAS = 4.9


def _corners(units):
    return np.array(list(itertools.product([0, 1], repeat=units)), np.uint8)


def _dbm():
    rng = np.random.default_rng(0)
    return DBM([rng.normal(0, 1, (3, 4)), rng.normal(0, 1, (4, 2))], [rng.normal(0, 1, n) for n in (3, 4, 2)])


def _dbn(shift=0.0):
    rng = np.random.default_rng(1)
    weights, recognition = rng.normal(0, 1, (6, 4)), rng.normal(0, 1, 4)
    recognition[0] += shift
    return DBN(
        [(weights, rng.normal(0, 1, 6), recognition)], RBM(rng.normal(0, 1, (4, 3)), np.zeros(4), np.zeros(3))
    )


def _exact(model, visible):
    if isinstance(model, DBM):
        hidden = _corners(2)
        joint = [
            model.bipartite.log_f(np.column_stack([visible, np.tile(h, (len(visible), 1))])) for h in hidden
        ]
        return logsumexp(joint, axis=0)
    hidden = _corners(4)
    (layer,) = model.directed
    inputs = hidden @ layer.weights.T + layer.visible_bias
    return logsumexp(visible @ inputs.T - sum_softplus(inputs) + model.top.log_f(hidden), axis=1)


def _sigmas(model, steps=25, wrong=0.0):
    visible = _corners(model.n_visible)[:8]
    weights = posterior_log_weights(model, visible, 20_000, np.random.default_rng(0), steps=steps)
    values = np.exp(weights + wrong - _exact(model, visible)[:, np.newaxis])
    return np.abs(values.mean(axis=1) - 1) / (values.std(axis=1, ddof=1) / np.sqrt(20_000))


@pytest.mark.parametrize(("model", "steps"), [(_dbm(), 1), (_dbm(), 4), (_dbn(), 25), (_dbn(4.0), 25)])
def test_weights_are_unbiased(model, steps):
    assert (_sigmas(model, steps) < SIGMAS).all()
    assert (_sigmas(model, steps, wrong=0.1) > SIGMAS).any()  # a mutant that is off by a tenth


def test_a_shifted_recognition_hardly_matters():
    visible = _corners(6)
    near, far = posterior_inputs(_dbn(), visible), posterior_inputs(_dbn(5.0), visible)
    assert np.abs(near - far).mean() < 0.5
    model, exact = _dbn(5.0), _exact(_dbn(5.0), visible)
    by_recognition = model.log_f(visible, samples=40)
    by_posterior = mean_log_f(posterior_log_weights(model, visible, 40, np.random.default_rng(0)))
    assert abs(by_posterior.value - exact.mean()) < 0.3 * abs(by_recognition.mean() - exact.mean())


def test_the_rise_that_is_left_covers_the_bias():
    """Log-normal weights of variance 2: the bias of 32 of them is known by simulation, and covered in 200 of 200."""
    rng = np.random.default_rng(0)
    estimates = [mean_log_f(rng.normal(-1.0, np.sqrt(2.0), (100, 32))) for _ in range(200)]
    assert np.mean([e.value for e in estimates]) < -0.05  # the truth is 0
    limits = np.array([e.limits(0.01) for e in estimates])
    assert (limits[:, 0] < 0).all()
    assert (limits[:, 1] > 0).sum() >= 198
    assert (
        sum(e.value + 2.6 * e.stderr < 0 for e in estimates) > 10
    )  # a standard error alone does not cover it


def test_few_samples_tell_no_limit():
    assert mean_log_f(np.zeros((5, 4))).limits(0.01)[1] in (np.inf,) or np.isnan(
        mean_log_f(np.zeros((5, 4))).stderr
    )
