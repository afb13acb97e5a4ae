"""RAISE with N particles through the public functions: samples, groups, bounds, errors and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import meltpoint as mp
from meltpoint.estimators.particles import particle_log_prob
from oracle.driving import models
from oracle.driving.truth import generated, oracle_path
from oracle.particles import p_n
from oracle.tables import code

BETAS = np.array([0.0, 0.35, 1.0])
FALSE_ALARM = 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["mixed", "float64"])
@pytest.mark.parametrize("particles", [1, 2, 3])
@pytest.mark.parametrize(
    "model", [models.rbm(0, 2, 2), models.dbm(0, [1, 1, 1]), models.dbn(1, [2, 2, 1])], ids=repr
)
def test_samples_follow_p_n(model, particles, precision) -> None:
    base = models.base("every layer", model)
    n = 20_000
    drawn = mp.sample_annealing_model(
        model, n, particles=particles, base=base, steps=BETAS, precision=precision, seed=particles
    )
    expected = n * generated(model, p_n(oracle_path(model, base), BETAS, particles))
    counts = np.bincount(code(drawn), minlength=len(expected))
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert statistic < chi2.isf(FALSE_ALARM, len(expected) - 1)


def test_samples_of_too_few_particles_are_rejected() -> None:
    model = models.rbm(0, 2, 2)
    base, n = models.base("every layer", model), 20_000
    drawn = mp.sample_annealing_model(model, n, particles=1, base=base, steps=BETAS)
    expected = n * p_n(oracle_path(model, base), BETAS, 3)
    counts = np.bincount(code(drawn), minlength=len(expected))
    assert float(((counts - expected) ** 2 / expected).sum()) > 2 * chi2.isf(FALSE_ALARM, len(expected) - 1)


def test_samples_do_not_depend_on_how_many_are_asked_for() -> None:
    model = models.rbm(0, 4, 3)
    several = mp.sample_annealing_model(model, 5, particles=7, steps=4)
    np.testing.assert_array_equal(several[:2], mp.sample_annealing_model(model, 2, particles=7, steps=4))


def test_one_particle_is_the_paper_s_estimator_to_the_bit() -> None:
    model, x = models.rbm(3, 4, 4), np.eye(4, dtype=int)
    forward = mp.ais_log_z(model, steps=9, chains=20)
    plain = mp.raise_log_prob(model, x, steps=9)
    alone = mp.raise_log_prob(model, x, steps=9, forward=forward, particles=1)
    assert plain.particles == alone.particles == 1
    np.testing.assert_array_equal(plain.log_weights, alone.log_weights)


def test_forward_chains_may_be_given_as_numbers() -> None:
    model, x = models.rbm(3, 4, 4), np.eye(4, dtype=int)
    forward = mp.ais_log_z(model, steps=9, chains=20)
    one = mp.raise_log_prob(model, x, steps=9, forward=forward)
    other = mp.raise_log_prob(model, x, steps=9, forward=forward.log_weights)
    assert one.particles == 21
    np.testing.assert_array_equal(one.values, other.values)
    assert repr(one).endswith("4 examples × 4 chains, N = 21)")
    assert len(repr(forward)) < 80


numbers = st.floats(-50, 50)


@settings(max_examples=min(60, settings().max_examples), deadline=None)
@given(
    st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=1, max_size=4),
    st.lists(numbers, min_size=1, max_size=9),
    st.data(),
)
def test_groups_are_averaged_and_bounded(log_reverse, forward, data) -> None:
    reverse, others = np.array(log_reverse), np.array(forward)
    n = data.draw(st.integers(2, len(others) + 1))
    log_f = 3.0
    found = particle_log_prob(log_f - reverse, reverse, others, n)
    groups = others[: len(others) // (n - 1) * (n - 1)].reshape(-1, n - 1)
    weights = np.exp(reverse)[:, :, None]
    expected = np.exp(log_f) * n / (weights + np.exp(groups).sum(axis=1))
    np.testing.assert_allclose(found.log_weights, np.log(expected.mean(axis=2)), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.values, np.log(expected.mean(axis=(1, 2))), rtol=1e-9, atol=1e-9)
    # It cannot exceed what AIS says of the same chains by more than log(N / (N - 1)).
    smallest = np.log(np.exp(groups).mean(axis=1)).min()
    assert (found.values <= log_f - smallest + np.log(n / (n - 1)) + 1e-9).all()
    assert found.forward_shares.shape == (len(reverse), len(groups))
    assert ((found.forward_shares >= 0) & (found.forward_shares <= 1 + 1e-9)).all()


def test_forward_shares_are_derivatives() -> None:
    rng = np.random.default_rng(0)
    reverse, others = rng.normal(0, 3, (5, 3)), rng.normal(0, 1, 8)
    starts = rng.normal(0, 1, (5, 3))
    found = particle_log_prob(starts, reverse, others, 5)
    for group in range(2):
        moved = others.copy()
        moved[4 * group : 4 * group + 4] += 1e-6
        slope = (particle_log_prob(starts, reverse, moved, 5).values - found.values) / 1e-6
        np.testing.assert_allclose(slope, -found.forward_shares[:, group], atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 10}, "another model, base, schedule or precision"),
        ({"precision": "float64"}, "another model, base, schedule or precision"),
        ({"base": mp.data_rates(np.eye(4, dtype=int))}, "another model, base, schedule or precision"),
        ({"forward": [[0.0]]}, "forward log weights of shape"),
        ({"forward": [np.nan]}, "with NaN"),
        ({"particles": 22}, "particles=22 with 20 forward chains"),
        ({"particles": 0}, "particles=0"),
        ({"forward": None, "particles": 2}, "particles=2 with 0 forward chains"),
    ],
)
def test_bad_input(changes, said) -> None:
    model, x = models.rbm(3, 4, 4), np.eye(4, dtype=int)
    how = {"forward": mp.ais_log_z(model, steps=9, chains=20), "steps": 9} | changes
    with pytest.raises(mp.InputError, match=said):
        mp.raise_log_prob(model, x, **how)
