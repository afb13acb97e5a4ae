"""log f of DBNs against enumeration. Means are compared with 4.9 standard errors: false alarms 1e-6 each."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from meltpoint.kernels.sigmoid import sum_softplus
from meltpoint.models import dbn
from meltpoint.models.dbn import DBN
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM

SIGMAS = 4.9


def _corners(units):
    return np.array(list(itertools.product([0, 1], repeat=units)), np.uint8)


def _dbn(shift=0.0):
    rng = np.random.default_rng(1)
    weights, recognition = rng.normal(0, 1, (6, 4)), rng.normal(0, 1, 4)
    recognition[0] += shift
    return DBN(
        [(weights, rng.normal(0, 1, 6), recognition)], RBM(rng.normal(0, 1, (4, 3)), np.zeros(4), np.zeros(3))
    )


def _exact(model, visible):
    hidden = _corners(4)
    (layer,) = model.directed
    inputs = hidden @ layer.weights.T + layer.visible_bias
    return logsumexp(visible @ inputs.T - sum_softplus(inputs) + model.top.log_f(hidden), axis=1)


def _sigmas(model, wrong=0.0):
    visible = _corners(6)[:8]
    weights = model._weigh_mixture(visible, np.arange(len(visible)), 20_000, 0, 1)[0]
    values = np.exp(weights + wrong - _exact(model, visible)[:, np.newaxis])
    return np.abs(values.mean(axis=1) - 1) / (values.std(axis=1, ddof=1) / np.sqrt(20_000))


@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_weights_are_unbiased(shift):
    assert (_sigmas(_dbn(shift)) < SIGMAS).all()
    assert (_sigmas(_dbn(shift), wrong=0.1) > SIGMAS).any()  # a mutant that is off by a tenth


def test_a_shifted_recognition_hardly_matters(monkeypatch):
    monkeypatch.setattr(dbn, "ENUMERATED", 0)
    visible = _corners(6)
    inputs = []
    for shift in (0.0, 5.0):
        posterior = _dbn(shift)._posterior
        inputs.append(posterior.mean_field(visible, posterior.recognised(visible)))
    assert np.abs(inputs[0] - inputs[1]).mean() < 0.5
    model, exact = _dbn(5.0), _exact(_dbn(5.0), visible)
    estimated = model.log_f_estimate(visible, samples=40)
    weights = [model.recognise_sample(visible[:, np.newaxis], _generators(visible, k)) for k in range(40)]
    alone = [log_weight[:, 0] + model.top.log_f(state[:, 0]) for state, log_weight in weights]
    by_recognition = logsumexp(alone, axis=0) - np.log(40)
    assert abs(estimated.values.mean() - exact.mean()) < 0.3 * abs(by_recognition.mean() - exact.mean())
    low, high = estimated.mean_limits(0.01)
    assert low <= exact.mean() <= high


def _generators(visible, k):
    return [np.random.default_rng([k, i]) for i in range(len(visible))]


def test_the_rise_that_is_left_covers_the_bias():
    """Log-normal weights of variance 2: the bias of 32 of them is known by simulation, and covered in 200 of 200."""
    rng = np.random.default_rng(0)
    estimates = [_log_f(rng.normal(-1.0, np.sqrt(2.0), (100, 32))) for _ in range(200)]
    assert np.mean([e.values.mean() for e in estimates]) < -0.05  # the truth is 0
    limits = np.array([e.mean_limits(0.01) for e in estimates])
    assert (limits[:, 0] < 0).all()
    assert (limits[:, 1] > 0).sum() >= 198
    # A standard error alone does not cover it.
    assert sum(e.values.mean() + 2.6 * e.values_error < 0 for e in estimates) > 10


def _log_f(weights) -> LogF:
    from meltpoint.models.log_f import estimate_log_f

    none = np.zeros((len(weights), 1), np.uint8)
    return estimate_log_f(none, np.arange(len(none)), lambda *_: (weights, weights[:, 0]), progress=None)


def test_few_samples_tell_no_limit():
    few = _log_f(np.random.default_rng(0).normal(size=(5, 4)))
    assert few.mean_limits(0.01)[1] == np.inf
    assert LogF.exact(np.zeros(5)).mean.rise == 0
