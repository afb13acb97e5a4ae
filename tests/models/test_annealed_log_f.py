"""log f by annealed weights: unbiased against enumeration, and what it corrects.

Means are compared with 4.9 standard errors: false alarms 1e-6 each.
"""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

import meltpoint as mp
from meltpoint.annealing.schedule import as_betas
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.estimators.raise_ import MeltingChains
from meltpoint.models import posterior
from meltpoint.models.log_f import LogF
from meltpoint.progress import silent
from oracle.driving import models
from oracle.driving.truth import f_visible
from oracle.tables import all_states

SIGMAS = 4.9
DBNS = [
    models.dbn(41, [3, 4, 2], 1.2),
    models.dbn(42, [3, 3, 3, 2], 1.2),
    models.dbn(43, [3, 3, 2], 0.8, units=["spin", "spin", "bernoulli"]),
]
DBMS = [models.dbm(44, [3, 2, 2], 1.5), models.dbm(45, [2, 2, 2, 3]), models.dbm(46, [3, 2, 2], units="spin")]


def sigmas(log_weights, truth):
    values = np.exp(log_weights - np.log(truth)[:, np.newaxis])
    return np.abs(values.mean(axis=1) - 1) / (values.std(axis=1, ddof=1) / np.sqrt(values.shape[1]))


def annealed(model, monkeypatch, chains=4000, steps=5):
    run = posterior.annealed_log_weights
    monkeypatch.setattr(
        "meltpoint.models.dbn.annealed_log_weights",
        lambda *arguments: run(*arguments, chains=chains, steps=steps),
    )
    return model._anneal(all_states(model.n_visible), np.random.default_rng(1))


@pytest.mark.parametrize("model", DBNS, ids=repr)
def test_annealed_weights_of_a_dbn_are_unbiased(model, monkeypatch):
    assert (sigmas(annealed(model, monkeypatch), f_visible(model)) < SIGMAS).all()


@pytest.mark.slow
def test_moves_that_are_accepted_wrongly_are_noticed(monkeypatch):
    """A mutant without the probability of the reverse move."""
    monkeypatch.setattr(posterior, "_log_flips", lambda flipped, log_odds: np.zeros(len(flipped)))
    weights = annealed(DBNS[0], monkeypatch, chains=20_000)
    assert (sigmas(weights, f_visible(DBNS[0])) > SIGMAS).any()


def test_annealing_makes_weights_equal(monkeypatch):
    few, many = (annealed(DBNS[0], monkeypatch, chains=200, steps=n).std(axis=1).mean() for n in (1, 60))
    assert many < 0.5 * few


def heated(model, chains, steps=5):
    """RAISE's log weights and log reverse weights (visible state, chain)."""
    states = all_states(model.n_visible)
    work = MeltingChains(Annealing(model, mp.uniform()), as_betas(steps), states, chains, 3)
    return work.compute(np.arange(len(states)), silent)


@pytest.mark.parametrize("model", DBMS, ids=repr)
def test_raise_weights_times_reverse_weights_are_unbiased_for_f(model):
    found = heated(model, 4000)
    assert (sigmas(found.log_weights + found.log_reverse_weights, f_visible(model)) < SIGMAS).all()
    # Mutants: the other way round, and without the melting that cancels.
    assert (sigmas(found.log_weights - found.log_reverse_weights, f_visible(model)) > SIGMAS).any()
    assert (sigmas(found.log_weights, f_visible(model)) > SIGMAS).any()


def bimodal_dbm(seed=2):
    """A DBM 6-12-12 whose hidden layers agree, examples of it, and their log f."""
    rng = np.random.default_rng(seed)
    weights = [rng.normal(0, 0.4, (6, 12)), rng.normal(0, 0.4, (12, 12)) + 0.7]
    biases = [rng.normal(0, 0.3, n) for n in (6, 12, 12)]
    for k, w in enumerate(weights):
        biases[k] -= w.sum(axis=1) / 2
        biases[k + 1] -= w.sum(axis=0) / 2
    model = mp.DBM(weights, biases)
    middle = all_states(12)
    above = middle @ biases[1] + np.logaddexp(0, middle @ weights[1] + biases[2]).sum(axis=1)
    log_f = above + np.logaddexp(0, middle @ weights[0].T + biases[0]).sum(axis=1)
    drawn = middle[rng.choice(len(middle), 60, p=np.exp(log_f - logsumexp(log_f)))]
    x = (rng.random((60, 6)) < expit(drawn @ weights[0].T + biases[0])).astype(np.uint8)
    return model, x, x @ biases[0] + logsumexp(x @ weights[0] @ middle.T + above, axis=1), logsumexp(log_f)


def test_a_mode_that_mean_field_misses_is_found_by_heating():
    model, x, log_f, log_z = bimodal_dbm()
    alone = model.log_f_estimate(x)
    assert alone.mean_limits(0.01)[1] < log_f.mean() - 0.1  # importance sampling sees nothing of it
    report = mp.evaluate(model, x, steps=200, base="uniform", ais_chains=200, schedule="linear", exact=False)
    assert report.between[0] <= log_f.mean() - log_z <= report.between[1]
    assert report.optimistic.value == pytest.approx(log_f.mean() - log_z, abs=0.1)


def sampled(rng, spread, n, chains, truth):
    """LogF of n examples with log-normal weights of unbiased values."""
    weights = truth[:, np.newaxis] + rng.normal(-(spread**2) / 2, spread, (n, chains))
    from meltpoint.models.log_f import estimate_log_f

    none = np.zeros((n, 1), np.uint8)
    return estimate_log_f(
        none, np.arange(n), lambda *_: (weights, weights[:, 0]), block=n, progress=None
    ), weights


def test_the_better_estimate_counts():
    rng, truth = np.random.default_rng(0), np.random.default_rng(1).normal(-50, 5, 400)
    chosen = np.arange(0, 400, 4)
    good, _ = sampled(rng, 0.3, 400, 100, truth)
    poor, _ = sampled(rng, 2.5, 400, 16, truth)
    _, precise = sampled(rng, 0.3, 100, 4, truth[chosen])
    _, vague = sampled(rng, 2.5, 100, 4, truth[chosen])
    assert not good.controlled_by(chosen, vague).is_corrected
    corrected = poor.controlled_by(chosen, precise)
    assert corrected.is_corrected
    assert abs(corrected.mean.value - truth.mean()) < 0.5 * abs(poor.mean.value - truth.mean())
    low, high = corrected.mean_limits(0.01)
    assert low <= truth.mean() <= high
    # Where some examples are off by much, and their own weights do not show it, annealing does.
    off = LogF(good.values - 8.0 * (np.arange(400) % 40 == 0), good.stderrs, good.bound, good.rises)
    corrected = off.controlled_by(chosen, precise)
    assert off.mean_limits(0.01)[1] < truth.mean() <= corrected.mean_limits(0.01)[1]


def test_a_single_chain_or_example_corrects_nothing():
    values, _ = sampled(np.random.default_rng(0), 0.3, 20, 100, np.zeros(20))
    for positions, weights in ((np.arange(5), np.ones((5, 1))), (np.arange(1), np.ones((1, 8)))):
        assert not values.controlled_by(positions, weights).is_corrected
    exact = LogF.exact(np.zeros(5))
    assert exact.controlled_by(np.arange(5), np.ones((5, 4))).mean.value == 0


@pytest.mark.slow
def test_limits_with_annealed_weights_hold():
    """Weights of spread 0.8, four chains for 100 of 400 examples: at 99 % more than 8 of 200 outside are a false
    alarm once in 1,000,000 changes of the random numbers; without what is allowed for the bias 100 and more are."""
    truth = np.random.default_rng(1).normal(-50, 5, 400)
    outside = plain = 0
    for k in range(200):
        rng = np.random.default_rng([5, k])
        chosen = rng.choice(400, 100, replace=False)
        poor, _ = sampled(rng, 2.0, 400, 16, truth)
        _, weights = sampled(rng, 0.8, 100, 4, truth[chosen])
        mean = poor.controlled_by(chosen, weights)
        low, high = mean.mean_limits(0.01)
        outside += not low <= truth.mean() <= high
        plain += not mean.mean.value + mean.mean.error >= truth.mean()
    assert outside <= 8
    assert plain > 40
