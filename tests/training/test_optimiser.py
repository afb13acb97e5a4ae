"""Steps and averages against plain NumPy."""

import numpy as np

from meltpoint.training.phases import Gradient, trainable_dbm
from meltpoint.training.stage import initial_state, sgd_step, update_average


def some_dbm(rng):
    return trainable_dbm([rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)], (1, 1))


def test_momentum_and_decay():
    rng = np.random.default_rng(0)
    dbm = some_dbm(rng)
    expected = [p.copy() for p in dbm.parameters]
    velocity = [np.zeros_like(p) for p in expected]
    state = initial_state(dbm)
    for rate in (0.1, 0.05, 0.02):
        slopes = [rng.normal(size=p.shape) for p in expected]
        sgd_step(state, Gradient((slopes[0],), (slopes[1], slopes[2])), rate, 0.9, 0.01)
        for k, decay in enumerate((0.01, 0.0, 0.0)):
            velocity[k] = 0.9 * velocity[k] + rate * (slopes[k] - decay * expected[k])
            expected[k] = expected[k] + velocity[k]
    for parameter, value in zip(dbm.parameters, expected, strict=True):
        np.testing.assert_allclose(parameter, value, rtol=0, atol=1e-14)


def test_the_average_is_the_mean_of_what_was_taken_in():
    rng = np.random.default_rng(1)
    dbm = some_dbm(rng)
    state = initial_state(dbm)
    seen = []
    for _ in range(5):
        dbm.parameters[0][:] += rng.normal(size=(4, 3))
        update_average(state)
        seen.append(dbm.parameters[0].copy())
    assert state.n_averaged == 5
    np.testing.assert_allclose(state.average[0], np.mean(seen, axis=0), rtol=0, atol=1e-14)
