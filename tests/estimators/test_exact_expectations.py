"""The estimators' expectations, enumerated over every chain, are what they are said to be."""

import numpy as np
import pytest

from meltpoint.annealing.blocks import Segment
from meltpoint.estimators.raise_ import raise_log_prob
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from oracle.driving import models
from oracle.driving.checks import EXACT, ais_error, raise_error, sampling_error
from oracle.driving.estimates import expected_probabilities
from oracle.driving.steps import moments
from oracle.driving.truth import oracle_path
from oracle.tables import all_states, code, marginal
from oracle.zoo import SCHEDULES

RBMS = [models.rbm(0, 1, 1), models.rbm(1, 2, 3), models.rbm(2, 4, 2), models.rbm(3, 4, 4, scale=3.0)]
DBMS = [
    models.dbm(0, [3, 2]),
    models.dbm(1, [2, 2, 2]),
    models.dbm(2, [2, 1, 2, 2]),
    models.dbm(3, [3, 2, 2, 2]),
]
DBNS = [models.dbn(0, [3, 2, 2]), models.dbn(1, [2, 3, 2]), models.dbn(2, [3, 2, 2, 2])]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", models.BASES)
@pytest.mark.parametrize("model", RBMS, ids=repr)
def test_rbm(model, kind, schedule) -> None:
    base, betas = models.base(kind, model), SCHEDULES[schedule]
    assert ais_error(model, base, betas) < EXACT
    assert raise_error(model, base, betas) < EXACT
    assert sampling_error(model, base, betas) < EXACT


@pytest.mark.parametrize("schedule", ["two betas", "uneven"])
@pytest.mark.parametrize("kind", ["uniform", "every layer"])
@pytest.mark.parametrize("model", DBMS, ids=repr)
def test_dbm(model, kind, schedule) -> None:
    base, betas = models.base(kind, model), SCHEDULES[schedule]
    assert ais_error(model, base, betas) < EXACT
    assert raise_error(model, base, betas) < EXACT
    assert sampling_error(model, base, betas) < EXACT


@pytest.mark.parametrize("schedule", ["two betas", "uneven"])
@pytest.mark.parametrize("kind", models.BASES)
@pytest.mark.parametrize("model", DBNS, ids=repr)
def test_dbn(model, kind, schedule) -> None:
    base, betas = models.base(kind, model), SCHEDULES[schedule]
    assert ais_error(model, base, betas) < EXACT
    assert raise_error(model, base, betas) < EXACT
    assert sampling_error(model, base, betas) < EXACT


@pytest.mark.parametrize("model", [RBMS[2], DBMS[2], DBNS[2]], ids=repr)
def test_expected_probabilities_add_up_to_one(model) -> None:
    total = expected_probabilities(model, models.base("data", model), SCHEDULES["squared"]).sum()
    assert total == pytest.approx(1, rel=EXACT)


@pytest.mark.parametrize("model", DBMS, ids=repr)
def test_heating_estimates_the_ratio_of_unnormalised_probabilities(model) -> None:
    base, betas = models.base("every layer", model), SCHEDULES["uneven"]
    mine, path = model.path(base), oracle_path(model, base)
    visible = all_states(model.n_visible)
    start = np.zeros((len(visible), mine.target.n_state), np.uint8)
    start[:, : model.n_visible] = visible
    clamped = np.arange(mine.target.n_state) < model.n_visible
    heated = moments(mine, [Segment(betas, clamped)]).mean[code(start)]
    f_model, f_base = (marginal(np.exp(path.log_f(beta)), path.visible) for beta in (1.0, 0.0))
    # The chain starts anywhere, yet its first move, at beta 0, draws h2, h4, … from p_0(h | v) exactly.
    np.testing.assert_allclose(heated, f_model / f_base, rtol=EXACT)


@pytest.mark.parametrize("precision", ["mixed", "float32", "float64"])
def test_degenerate_deep_models_are_rbms_to_the_last_bit(precision) -> None:
    rbm = models.rbm(5, 5, 4)
    deep = [DBM([rbm.weights], [rbm.visible_bias, rbm.hidden_bias]), DBN([], rbm)]
    x, base = all_states(5), models.base("data", rbm)
    options = {"base": base, "steps": 20, "chains": 2, "seed": 3, "precision": precision, "threads": 1}
    expected = raise_log_prob(rbm, x, **options)
    for model in deep:
        found = raise_log_prob(model, x, **options)
        np.testing.assert_array_equal(found.log_weights, expected.log_weights)
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(model.log_f(x), rbm.log_f(x))
