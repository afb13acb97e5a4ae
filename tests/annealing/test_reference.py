"""The plain loop: its move is reversible with respect to p_beta, its parts are what they are called."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.annealing.blocks import Segment
from meltpoint.backends.reference import anneal_reference
from oracle.driving import models
from oracle.driving.dictated import Dictation
from oracle.driving.steps import step_at
from oracle.driving.truth import oracle_path
from oracle.tables import all_states, code, marginal
from oracle.zoo import SCHEDULES

MODELS = [
    models.rbm(41, 4, 4, scale=3.0),
    models.rbm(42, 1, 3),
    models.dbm(43, [2, 2, 2]),
    models.dbm(44, [2, 2, 1, 2]),
]
BETAS = [0.0, 0.1, 0.5, 1.0]


def p_even(model, base, beta):
    """p_beta (even state,) by the oracle."""
    path = oracle_path(model, base)
    return marginal(path.p(beta), path.even)


@pytest.mark.parametrize("kind", models.BASES)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_path_is_the_oracles(model, kind) -> None:
    base = models.base(kind, model)
    mine, path = model.path(base), oracle_path(model, base)
    assert np.exp(mine.log_z_base) == pytest.approx(path.z(0.0), rel=1e-12)
    states = all_states(mine.target.n_state)
    for beta in BETAS:
        f = marginal(np.exp(path.log_f(beta)), path.even)
        np.testing.assert_allclose(np.exp(mine.log_f(beta, states)), f, rtol=1e-12)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_move_is_reversible(model, beta) -> None:
    base = models.base("every layer", model)
    p, matrix = p_even(model, base, beta), step_at(model.path(base), beta).probability
    flow = p[:, np.newaxis] * matrix
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(flow, flow.T, rtol=1e-10)
    np.testing.assert_allclose(p @ matrix, p, rtol=1e-12)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_with_clamped_units_the_move_is_reversible_given_them(model, beta) -> None:
    base = models.base("every layer", model)
    path, p = model.path(base), p_even(model, base, beta)
    clamped = np.arange(path.target.n_state) % 2 == 0
    matrix = step_at(path, beta, clamped=clamped).probability
    held = code(all_states(clamped.size)[:, clamped])
    assert (matrix[held[:, np.newaxis] != held] == 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
    flow = p[:, np.newaxis] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_at_beta_0_the_move_forgets_where_it_came_from(model) -> None:
    base = models.base("every layer", model)
    matrix = step_at(model.path(base), 0.0).probability
    np.testing.assert_allclose(matrix, np.broadcast_to(p_even(model, base, 0.0), matrix.shape), rtol=1e-12)


@pytest.mark.parametrize("betas", [SCHEDULES["two betas"], np.array([0.0, 0.2, 0.7, 1.0])], ids=len)
@pytest.mark.parametrize("descending", [False, True])
def test_the_loop_is_its_steps_one_after_the_other(betas, descending) -> None:
    betas = betas[::-1] if descending else betas
    model = models.rbm(45, 2, 2)
    path = model.path(models.base("every layer", model))
    trajectories = all_states(4 * (betas.size - 1))
    start = np.repeat(np.arange(4), len(trajectories))
    outcomes = Dictation(np.tile(trajectories, (4, 1)))
    end, log_weights = anneal_reference(path, Segment(betas), all_states(2)[start], outcomes)
    whole = np.zeros((4, 4))
    np.add.at(whole, (start, code(end)), np.exp(outcomes.log_prob + log_weights))
    by_steps = np.eye(4)
    for beta, following in pairwise(betas):
        by_steps = by_steps @ step_at(path, beta, following).weight
    np.testing.assert_allclose(whole, by_steps, rtol=1e-12)


@given(st.floats(0, 1), st.integers(0, 999))
@settings(max_examples=min(30, settings().max_examples), deadline=None)
def test_a_unit_is_on_where_its_uniform_is_at_most_its_probability(beta, seed) -> None:
    # `Dictation` replaces the draw; here it is the real one, on a lattice of uniforms.
    model = models.rbm(seed, 1, 1)
    path = model.path(models.base("every layer", model))
    n = 400
    lattice = (np.arange(n) + 0.5) / n
    uniforms = iter([np.repeat(lattice, n)[:, np.newaxis], np.tile(lattice, n)[:, np.newaxis]])
    start = np.zeros((n * n, 1), np.uint8)
    draws = SimpleNamespace(units=lambda block, inputs: block.unit.draw(inputs, next(uniforms)))
    end = path.transition.move(path, beta, start, draws)
    assert abs(end.mean() - step_at(path, beta).probability[0, 1]) < 1 / n


def test_the_first_weight_belongs_to_the_state_after_the_first_sweep() -> None:
    model = models.rbm(46, 2, 1)
    path = model.path(models.base("data", model))
    end, log_weights = anneal_reference(
        path,
        Segment(np.array([0.3, 0.8])),
        np.zeros((1, 2), np.uint8),
        SimpleNamespace(units=lambda _block, t: np.ones_like(t, np.uint8)),
    )
    assert end.tolist() == [[1, 1]]
    assert log_weights == pytest.approx(path.log_f(0.8, end) - path.log_f(0.3, end))
