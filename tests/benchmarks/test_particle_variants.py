"""Islands are unbiased for the law of their generative process; dependent starts have the base's law.

Each statistical test allows 5 standard errors: a false alarm with probability 6e-7 for each of the numbers compared.
"""

import importlib
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

from meltpoint.annealing.base import uniform
from meltpoint.annealing.loop import prepare_path
from meltpoint.models.rbm import RBM

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
REPETITIONS = 4000
BETAS = np.array([0.0, 0.3, 0.7, 1.0])
ALL = np.array(list(itertools.product([0, 1], repeat=3)), np.uint8)


@pytest.fixture
def variants(monkeypatch):
    """The benchmark as a module."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("particle_variants")


@pytest.fixture
def rbm() -> RBM:
    rng = np.random.default_rng(3)
    return RBM(4 * rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2))


def islands(variants, rbm, m, threshold, seed=0):
    prepared = prepare_path(rbm.path(uniform()), "float64")
    return variants.Islands(prepared, BETAS, (1, 2), m, seed, threshold)


def estimates(variants, rbm, m, threshold, n):
    """Estimates (repetition, visible state), every repetition with forward islands of its own."""
    some = islands(variants, rbm, m, threshold)
    forward = some.forward(REPETITIONS * (n - 1))[0].reshape(REPETITIONS, n - 1)
    own = some.conditional(np.tile(ALL, (REPETITIONS, 1))).reshape(REPETITIONS, len(ALL))
    return own, forward


def sums(variants, rbm, own, forward):
    """Sums over all visible states (repetition,) of the estimates."""
    return np.exp(variants.islands_log_prob(rbm.log_f(ALL), own, forward)).sum(axis=1)


def bernoulli(rates, states):
    """Probabilities (row of rates, state) of states of independent units."""
    return np.where(states, rates[:, np.newaxis], 1 - rates[:, np.newaxis]).prod(axis=2)


def deviation(values) -> float:
    return float((values.mean() - 1) / (values.std(ddof=1) / np.sqrt(len(values))))


@pytest.mark.slow
@pytest.mark.parametrize(("m", "threshold"), [(1, 0.5), (4, 0.7), (4, 2.0)])
@pytest.mark.parametrize("n", [1, 3])
def test_estimates_add_up_to_one(variants, rbm, m, threshold, n):
    own, forward = estimates(variants, rbm, m, threshold, n)
    assert abs(deviation(sums(variants, rbm, own, forward))) < 5


def test_forward_weights_are_unbiased_for_z(variants, rbm):
    log_weights = islands(variants, rbm, 4, 0.7).forward(REPETITIONS)[0]
    log_z = logsumexp(rbm.log_f(ALL))
    assert abs(deviation(np.exp(log_weights - log_z))) < 5


@pytest.mark.slow
def test_estimates_are_the_law_of_the_process(variants, rbm):
    n, m, threshold = 2, 4, 0.7
    own, forward = estimates(variants, rbm, m, threshold, n)
    f = rbm.log_f(ALL)
    found = np.exp(f + np.log(n) - np.logaddexp(own, forward))
    log_weights, states = islands(variants, rbm, m, threshold, seed=1).forward(REPETITIONS * n)
    rng = np.random.default_rng(0)
    noise = rng.gumbel(size=(REPETITIONS, n))
    chosen = np.argmax(log_weights.reshape(REPETITIONS, n) + noise, axis=1)
    kept = states.reshape(REPETITIONS, n, 3)[np.arange(REPETITIONS), chosen]
    # The last move's law instead of a draw of it: the error is well known for rare states too.
    hidden = np.array(list(itertools.product([0, 1], repeat=2)), np.uint8)
    shown = bernoulli(rbm.hidden_given_visible(kept), hidden) @ bernoulli(
        rbm.visible_given_hidden(hidden), ALL
    )
    error = np.hypot(found.std(axis=0, ddof=1), shown.std(axis=0, ddof=1)) / np.sqrt(REPETITIONS)
    assert (np.abs(found.mean(axis=0) - shown.mean(axis=0)) < 5 * error).all()


@pytest.mark.slow
def test_an_own_island_without_its_melted_path_is_rejected(variants, rbm):
    some = islands(variants, rbm, 4, 0.7)
    own = some.forward(REPETITIONS * len(ALL))[0].reshape(REPETITIONS, len(ALL))
    _, forward = estimates(variants, rbm, 4, 0.7, 3)
    assert abs(deviation(sums(variants, rbm, own, forward))) > 10


@pytest.mark.slow
def test_a_kept_path_that_nobody_may_branch_off_is_rejected(variants, rbm, monkeypatch):
    real = variants.Islands._melt

    def astray(self, visible):
        states, weights = real(self, visible)
        return [np.zeros_like(s) for s in states], weights

    monkeypatch.setattr(variants.Islands, "_melt", astray)
    own, forward = estimates(variants, rbm, 4, 2.0, 1)
    assert abs(deviation(sums(variants, rbm, own, forward))) > 10


def test_uniforms_of_dependent_starts_are_uniform_and_stratified(variants):
    rng = np.random.default_rng(0)
    latin = variants.latin_uniforms(2000, 8, 3, rng)
    np.testing.assert_array_equal(
        np.sort((latin * 8).astype(int), axis=1), np.tile(np.arange(8)[:, None], (2000, 1, 3))
    )
    for uniforms in (latin, variants.antithetic_uniforms(2000, 3, rng)):
        for k in range(uniforms.shape[1]):
            # Mean, variance, and independence of the units of one chain.
            u = uniforms[:, k] - 0.5
            assert (np.abs(u.mean(axis=0)) < 5 * np.sqrt(1 / 12 / 2000)).all()
            assert (np.abs((u**2).mean(axis=0) - 1 / 12) < 5 * np.sqrt(1 / 180 / 2000)).all()
            assert abs((u[:, 0] * u[:, 1]).mean()) < 5 / 12 / np.sqrt(2000)


def test_started_chains_are_unbiased_for_z(variants, rbm):
    prepared = prepare_path(rbm.path(uniform()), "float64")
    uniforms = variants.latin_uniforms(2000, 8, 3, np.random.default_rng(1))
    weights = np.exp(variants.started_log_weights(prepared, BETAS, uniforms, 0) - logsumexp(rbm.log_f(ALL)))
    assert abs(deviation(weights.mean(axis=1))) < 5
