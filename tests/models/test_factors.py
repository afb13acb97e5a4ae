"""A model as factors: adding up the factors' values gives log f of every state of all units."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from meltpoint.errors import InputError
from oracle.driving import models


def joint_log_f(model):
    """States (state, unit) of all units and their log f (state,), by adding up factor after factor."""
    cardinalities, factors, constant = model.as_factors()
    states = np.array(list(itertools.product(*map(range, cardinalities))))
    log_f = np.full(len(states), constant)
    for scope, table in factors:
        assert table.shape == tuple(cardinalities[i] for i in scope)
        log_f += table[tuple(states[:, i] for i in scope)]
    return states, log_f


def visible_log_f(model):
    """Visible states (state, visible unit) and their log f (state,), all other units summed out."""
    states, log_f = joint_log_f(model)
    visible = states[:, : model.n_visible]
    rows, group = np.unique(visible, axis=0, return_inverse=True)
    group = group.reshape(-1)  # NumPy 2.0 gives it another shape
    return rows, np.array([logsumexp(log_f[group == k]) for k in range(len(rows))])


@pytest.mark.parametrize(
    "model",
    [
        models.rbm(1, 3, 2),
        models.rbm(1, 3, 2, units=("spin", "bernoulli")),
        models.dbm(2, [2, 3]),
        models.dbm(2, [3, 2], units=["spin", "spin"]),
    ],
    ids=repr,
)
def test_layers(model):
    states, log_f = visible_log_f(model)
    values = model.decode(states.astype(np.uint8))
    np.testing.assert_allclose(model.log_f(values), log_f, rtol=1e-12, atol=1e-12)


def test_a_deep_machine_has_its_layers_in_order():
    model = models.dbm(3, [2, 1, 2, 1], units=["spin", "bernoulli", "spin", "bernoulli"])
    states, log_f = joint_log_f(model)
    even = states[:, [0, 1, 3, 4]]
    rows, group = np.unique(even, axis=0, return_inverse=True)
    group = group.reshape(-1)
    summed = [logsumexp(log_f[group == k]) for k in range(len(rows))]
    np.testing.assert_allclose(model.mrf.log_f(rows.astype(np.uint8)), summed, rtol=1e-12)


def test_directed_layers_are_not_factors():
    with pytest.raises(InputError, match="directed layers"):
        models.dbn(1, [2, 2, 2]).as_factors()
