"""log f by annealed weights: unbiased against enumeration, and what it corrects.

Means are compared with 4.9 standard errors: false alarms 1e-6 each.
"""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

import meltpoint as mp
from meltpoint.annealing.blocks import GeneratorDraws
from meltpoint.annealing.schedule import as_betas
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.estimators.raise_ import MeltingChains
from meltpoint.models import annealed_posterior
from meltpoint.models.annealed_posterior import HiddenBase, annealed_log_weights
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


def several_codes(model):
    """A base of three codes, whatever a search would find, of unequal shares; the last one has none for half of v."""
    rng, visible = np.random.default_rng(7), all_states(model.n_visible)
    inputs = rng.normal(0, 2, (len(visible), 3, sum(model.layer_sizes[1:-1]))).astype(np.float32)
    shares = rng.dirichlet(np.ones(3), len(visible))
    shares[::2, 2] = 0.0
    return HiddenBase(inputs, shares / shares.sum(axis=1, keepdims=True))


def annealed(model, base=None, chains=4000, steps=5):
    """Log weights (visible state, chain), from the codes that the search finds or from those that are given."""
    visible, rng = all_states(model.n_visible), np.random.default_rng(1)
    if base is None:
        return annealed_log_weights(model._posterior, visible, rng, chains=chains, steps=steps)
    return annealed_posterior.anneal(model._posterior, visible, base, chains, steps, rng)[1]


@pytest.mark.parametrize("model", DBNS, ids=repr)
@pytest.mark.parametrize("several", [False, True])
def test_annealed_weights_of_a_dbn_are_unbiased(model, several):
    weights = annealed(model, several_codes(model) if several else None)
    assert (sigmas(weights + model.mrf.log_constant, f_visible(model)) < SIGMAS).all()


@pytest.mark.parametrize("model", DBNS, ids=repr)
def test_a_draw_of_several_codes_weighs_f_on_average(model):
    """Exactly: the mean weight of a draw, f / q, over all hidden states with their probabilities q, is f(v)."""
    base, visible = several_codes(model), all_states(model.n_visible)
    hidden = all_states(base.inputs.shape[2]).astype(np.float32)
    chains = np.broadcast_to(hidden, (len(visible), *hidden.shape))
    path = annealed_posterior.PosteriorPath(model._posterior, visible, base, len(hidden))
    log_base, log_f = (path.log_f(s, chains.reshape(-1, hidden.shape[1])) for s in (0.0, 1.0))
    by_example = (-1, len(hidden))
    q, weights = np.exp(log_base).reshape(by_example), np.exp(log_f - log_base).reshape(by_example)
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=1e-6)  # single precision
    truth = f_visible(model) / np.exp(model.mrf.log_constant)
    np.testing.assert_allclose((q * weights).sum(axis=1), truth, rtol=1e-5)
    # Draws have these probabilities (six errors in each cell: false alarms 1e-6), not those of the first code.
    count = 20_000
    states = base.draw(count, GeneratorDraws([np.random.default_rng(3)], count * len(visible)))
    number = (states @ (1 << np.arange(hidden.shape[1]))).astype(int).reshape(len(visible), count)
    order = (hidden @ (1 << np.arange(hidden.shape[1]))).astype(int)
    found = np.stack([np.bincount(row, minlength=len(hidden)) for row in number])[:, order]
    errors = np.sqrt(count * q * (1 - q)) + 1
    assert (np.abs(found - count * q) < 6 * errors).all()
    first = np.exp(base.log_joint(chains)[:, :, 0] - np.log(base.shares[:, :1]))
    assert (np.abs(found - count * first) > 6 * errors).any()


@pytest.mark.slow
def test_moves_that_are_accepted_wrongly_are_noticed(monkeypatch):
    """A mutant without the probability of the reverse move."""
    monkeypatch.setattr(annealed_posterior, "_log_flips", lambda flipped, log_odds: np.zeros(len(flipped)))
    weights = annealed(DBNS[0], chains=20_000)
    assert (sigmas(weights, f_visible(DBNS[0])) > SIGMAS).any()


@pytest.mark.parametrize("model", DBNS, ids=repr)
def test_weights_against_the_own_code_alone_are_noticed(model, monkeypatch):
    """A mutant whose density is that of the most probable code, not of the whole mixture."""
    monkeypatch.setattr(annealed_posterior, "log_sum_exp", lambda joint, axis: joint.max(axis=axis))
    weights = annealed(model, several_codes(model))
    assert (sigmas(weights + model.mrf.log_constant, f_visible(model)) > SIGMAS).any()


def test_annealing_makes_weights_equal():
    base = several_codes(DBNS[0])
    few, many = (annealed(DBNS[0], base, chains=200, steps=n).std(axis=1).mean() for n in (1, 60))
    assert many < 0.5 * few


def two_codes(coupling, layers=1, n=12):
    """A DBN whose top RBM has all units off or all on, alike; its recognition knows the first of these codes."""
    top = mp.RBM(np.full((n, n), coupling), np.full(n, -coupling * n / 2), np.full(n, -coupling * n / 2))
    between = [(np.zeros((6, 5)), np.zeros(6), np.zeros(5))] * (layers - 1)
    lower = between[-1][0].shape[1] if between else 6
    model = mp.DBN([*between, (np.zeros((lower, n)), np.zeros(lower), np.full(n, -60.0))], top)
    return model, np.random.default_rng(0).integers(0, 2, (60, 6)), -6 * np.log(2)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_code_that_recognition_does_not_know_is_found(layers):
    model, test, truth = two_codes(1.0, layers)
    log_f = model.log_f_estimate(test)
    truth += mp.exact_log_z(model)
    assert log_f.values.mean() < truth - 0.6  # importance sampling sees the other code nowhere
    assert log_f.mean.value == pytest.approx(truth, abs=0.02)
    low, high = log_f.mean_limits(0.01)
    assert low <= truth <= high < truth + 0.2


@pytest.mark.slow
@pytest.mark.parametrize("coupling", [1.0, 8.0])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("steps", [300, 1000, 3000])
def test_a_report_allows_for_a_code_that_recognition_does_not_know(coupling, layers, steps):
    """With recognition's code alone those with a coupling of 1 were trusted, 0.7 nats off; those of 8 are saturated."""
    model, test, truth = two_codes(coupling, layers)
    low, high = mp.evaluate(model, test, test, steps=steps, exact=False).between
    assert low <= truth <= high


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
