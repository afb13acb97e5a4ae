"""CSL is a mixture of the model's own conditionals over samples of its chains: both halves, by enumeration.

The chains are independent and their estimates lie between 0 and 1, so the empirical Bernstein inequality leaves a
false-alarm probability of 1e-6 per test, whatever the distribution.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import as_betas
from meltpoint.errors import InputError
from meltpoint.estimators.csl import csl_log_prob
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from oracle.concentration import FALSE_ALARM
from oracle.driving import models
from oracle.driving.truth import f_visible, p_ann
from oracle.tables import all_states

RBM_ = models.rbm(11, 3, 2)
DBM = models.dbm(11, [2, 2, 2])
DBM3 = models.dbm(11, [2, 2, 2, 2], scale=4.0)
DBN2 = models.dbn(11, [2, 2, 2], scale=3.5)
DBN3 = models.dbn(11, [2, 2, 2, 2], scale=3.5)
SPINS = [
    models.rbm(12, 3, 2, 0.8, units=("spin", "spin")),
    models.dbm(12, [2, 2, 2], 0.8, units="spin"),
    models.dbn(12, [2, 2, 2, 2], 1.0, units=["spin", "bernoulli", "spin", "spin"]),
]
SWITCH = RBM([[2.0], [2.0], [2.0]], [-1.0, -1.0, -1.0], [-3.0])  # all on or all off, with equal probability
ALL_ON = Base("all on", (np.full(3, 3.0),))
case = pytest.mark.parametrize("model", [RBM_, DBM, DBM3, DBN2, DBN3, *SPINS], ids=repr)
CHAINS = 6_000


def expected(model, base, steps, every):
    """The estimate's expectation (visible state,): the mean over its samples of what the chains generate."""
    burn_in = -(-steps // 10)
    moves = min(every, steps - burn_in)
    before = as_betas(burn_in)[:-1]
    # Where h is drawn from the state and v from h, that is one move more; a DBN's state is its h already.
    last = 0 if isinstance(model, DBN) else 1
    samples = (steps - burn_in) // moves
    walks = [np.concatenate([before, np.ones(k * moves + last)]) for k in range(1, samples + 1)]
    return np.mean([p_ann(model, base, betas) for betas in walks], axis=0)


def off(run, p):
    """By how much the estimates (example,) miss p, in units of what chance allows (Maurer and Pontil 2009)."""
    weights = np.exp(run.log_weights)
    log_term = np.log(4 * len(p) / FALSE_ALARM)
    spread = np.sqrt(2 * weights.var(axis=1, ddof=1) * log_term / CHAINS)
    return np.abs(weights.mean(axis=1) - p) / (spread + 7 * log_term / (3 * (CHAINS - 1)))


def estimate(model, base, steps, every):
    x = model.decode(all_states(model.n_visible))
    return csl_log_prob(model, x, base=base, steps=steps, chains=CHAINS, every=every, seed=3, threads=1)


@case
def test_the_mean_is_that_of_the_enumerated_chains(model):
    base = models.base("every layer", model)
    for steps, every in [(2, 1), (5, 2)]:
        run = estimate(model, base, steps, every)
        assert (off(run, expected(model, base, steps, every)) < 1).all()


@case
def test_in_equilibrium_it_is_unbiased_and_its_logarithm_low(model):
    f = f_visible(model)
    p = f / f.sum()
    run = estimate(model, None, steps=100, every=50)
    assert (off(run, p) < 1).all()
    assert (run.log_weights.mean(axis=1) < np.log(p)).all()


def test_a_wrong_number_of_moves_would_be_found_out():
    run = estimate(SWITCH, ALL_ON, 2, 1)
    assert (off(run, expected(SWITCH, ALL_ON, 2, 1)) < 1).all()
    assert (off(run, expected(SWITCH, ALL_ON, 3, 2)) > 1).any()


def test_hidden_means_instead_of_samples_would_be_found_out(monkeypatch):
    def with_means(self, state, _uniforms):
        return expit(state @ self.weights + self.hidden_bias) @ self.weights.T + self.visible_bias

    monkeypatch.setattr(RBM, "visible_log_odds", with_means)
    assert (off(estimate(SWITCH, ALL_ON, 2, 1), expected(SWITCH, ALL_ON, 2, 1)) > 1).any()


@settings(max_examples=min(25, settings().max_examples))
@given(
    kind=st.sampled_from([RBM_, DBM, DBM3, DBN2, DBN3, *SPINS]),
    steps=st.integers(1, 30),
    chains=st.integers(1, 5),
    every=st.integers(1, 40),
    seed=st.integers(0, 2**32),
)
def test_it_is_a_distribution(kind, steps, chains, every, seed):
    x = kind.decode(all_states(kind.n_visible))
    run = csl_log_prob(kind, x, steps=steps, chains=chains, every=every, seed=seed, threads=1)
    assert np.exp(run.values).sum() == pytest.approx(1, abs=1e-12)
    assert run.log_weights.shape == (len(x), chains)
    assert np.exp(run.log_weights).mean(axis=1) == pytest.approx(np.exp(run.values), abs=1e-12)
    assert np.isnan(run.stderrs).all() == (chains == 1)


def test_chains_and_examples_do_not_depend_on_their_neighbours():
    x = all_states(3)
    whole = csl_log_prob(RBM_, x, steps=30, chains=20, seed=1, threads=1)
    part = csl_log_prob(RBM_, x[2:4], steps=30, chains=3, seed=1, threads=2)
    np.testing.assert_allclose(part.log_weights, whole.log_weights[2:4, :3], atol=1e-12)
    other = csl_log_prob(RBM_, x, steps=30, chains=20, seed=2, threads=1)
    assert not np.allclose(other.log_weights, whole.log_weights)


def test_a_dbn_without_directed_layers_is_its_top():
    x = all_states(3)
    of_top = csl_log_prob(RBM_, x, steps=10, chains=3)
    of_dbn = csl_log_prob(DBN([], RBM_), x, steps=10, chains=3)
    np.testing.assert_array_equal(of_dbn.values, of_top.values)


def test_impossible_examples_do_not_break_it():
    run = csl_log_prob(RBM([[0.0]], [800.0], [0.0]), [[0], [1]], steps=10, chains=2)
    assert run.values == pytest.approx([-800.0, 0.0])


def test_progress_counts_moves():
    told = []
    csl_log_prob(RBM_, [[0, 1, 0]], steps=20, chains=2, every=6, progress=lambda *heard: told.append(heard))
    assert told[0] == ("CSL", 0.0, 40.0)
    assert told[-1] == ("CSL", 40.0, 40.0)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"chains": 0}, {"every": 0}, {"steps": 1.5}])
def test_counts_are_checked(wrong):
    with pytest.raises(InputError):
        csl_log_prob(RBM_, [[0, 1, 0]], **wrong)
