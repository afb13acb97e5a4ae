"""RAISE with N particles, enumerated over every chain: unbiased for p_N, the law of the generative process."""

import itertools
from unittest import mock

import numpy as np
import pytest

from meltpoint.estimators import particles
from meltpoint.models.dbm import DBM
from oracle.driving import models
from oracle.driving.checks import EXACT, LOUD
from oracle.driving.particles import expected_estimates, forward_weights
from oracle.driving.truth import generated, oracle_path, p_ann
from oracle.particles import forward_chains, p_n

BETAS = np.array([0.0, 0.35, 1.0])
RBM = models.rbm(0, 2, 2)
DEEP = models.dbm(1, [1, 1, 1, 1], scale=1.5)
CASES = [
    RBM,
    models.rbm(1, 2, 1, scale=3.0),
    models.dbm(0, [1, 1, 1]),
    DEEP,
    models.dbn(0, [2, 1, 1]),
    models.dbn(1, [2, 2, 1]),
]


def truth(model, base, betas, particles):
    return generated(model, p_n(oracle_path(model, base), betas, particles))


def largest_error(found, expected) -> float:
    return float(np.abs(found / expected - 1).max())


@pytest.mark.parametrize("kind", models.BASES)
@pytest.mark.parametrize("model", CASES, ids=repr)
def test_the_oracle_with_one_particle_is_the_annealing_model(model, kind) -> None:
    base = models.base(kind, model)
    assert largest_error(truth(model, base, BETAS, 1), p_ann(model, base, BETAS)) < EXACT


@pytest.mark.parametrize("model", CASES, ids=repr)
def test_forward_weights_are_those_of_the_library(model) -> None:
    base = models.base("every layer", model)
    expected = forward_chains(oracle_path(model, base), BETAS)
    probability, log_weights = forward_weights(model, base, BETAS)
    order = np.argsort(expected.weight)
    np.testing.assert_allclose(
        np.interp(log_weights, np.log(expected.weight[order]), expected.weight[order]),
        np.exp(log_weights),
        rtol=1e-9,
    )
    assert probability @ np.exp(log_weights) == pytest.approx(
        expected.probability @ expected.weight, rel=EXACT
    )


@pytest.mark.parametrize(
    ("model", "particles", "kind"),
    [
        *itertools.product(CASES, (1, 2), ("uniform", "every layer")),
        *((model, 3, kind) for model in CASES if model is not DEEP for kind in ("uniform", "every layer")),
        # It takes longer than all others together.
        pytest.param(DEEP, 3, "every layer", marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_estimates_are_unbiased_for_the_law_of_the_process(model, kind, particles) -> None:
    base = models.base(kind, model)
    found = expected_estimates(model, base, BETAS, particles)
    assert largest_error(found, truth(model, base, BETAS, particles)) < EXACT
    assert found.sum() == pytest.approx(1, rel=EXACT)


@pytest.mark.parametrize("model", CASES, ids=repr)
def test_one_particle_less_in_the_numerator(model) -> None:
    base = models.base("every layer", model)
    found = expected_estimates(model, base, BETAS, 2, change=lambda p, n: p * (n - 1) / n)
    assert largest_error(found, truth(model, base, BETAS, 2)) > LOUD


@pytest.mark.parametrize("model", CASES, ids=repr)
def test_the_examples_own_weight_left_out(model) -> None:
    base = models.base("every layer", model)
    # Without w_rev in the denominator: log1p(exp(odds)) becomes odds.
    with mock.patch.object(particles, "softplus", lambda odds: odds):
        found = expected_estimates(model, base, BETAS, 2)
    assert largest_error(found, truth(model, base, BETAS, 2)) > LOUD


@pytest.mark.parametrize("model", CASES, ids=repr)
def test_forward_weights_of_another_base(model) -> None:
    base = models.base("every layer", model)
    other = forward_weights(model, models.base("uniform", model), BETAS)
    found = expected_estimates(model, base, BETAS, 2, forward=other)
    assert largest_error(found, truth(model, base, BETAS, 2)) > LOUD


@pytest.mark.parametrize("model", CASES, ids=repr)
def test_forward_weights_of_other_betas(model) -> None:
    base = models.base("every layer", model)
    other = forward_weights(model, base, np.array([0.0, 0.8, 1.0]))
    found = expected_estimates(model, base, BETAS, 2, forward=other)
    assert largest_error(found, truth(model, base, BETAS, 2)) > LOUD


def test_a_heated_models_reverse_weight_must_leave_the_heating_out() -> None:
    model = next(case for case in CASES if isinstance(case, DBM))
    base = models.base("every layer", model)
    real = particles.particle_log_prob

    def all_of_it(log_weights, log_reverse, forward, particles=None):
        f_0 = model.path(base)
        return real(log_weights, f_0.log_z_base - log_weights, forward, particles)

    with mock.patch.object(particles, "particle_log_prob", all_of_it):
        found = expected_estimates(model, base, BETAS, 2)
    assert largest_error(found, truth(model, base, BETAS, 2)) > LOUD


def test_more_particles_come_closer_to_the_model() -> None:
    path = oracle_path(RBM, models.base("uniform", RBM))
    p = np.exp(RBM.log_f([[0, 0], [0, 1], [1, 0], [1, 1]])) / path.z(1.0)
    loss = [float(p @ np.log(p / p_n(path, BETAS, n))) for n in (1, 2, 3)]
    assert loss[0] > loss[1] > loss[2] > 0
