"""Steps and averages against plain NumPy."""

import numpy as np

from meltpoint.training.ascent import at_rest, average, climb
from meltpoint.training.machine import machine_of
from meltpoint.training.phases import Gradient


def some_machine(rng):
    return machine_of([rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)], (1, 1))


def test_momentum_and_decay():
    rng = np.random.default_rng(0)
    machine = some_machine(rng)
    expected = [p.copy() for p in machine.parameters]
    velocity = [np.zeros_like(p) for p in expected]
    ascent = at_rest(machine)
    for rate in (0.1, 0.05, 0.02):
        slopes = [rng.normal(size=p.shape) for p in expected]
        climb(machine, ascent, Gradient((slopes[0],), (slopes[1], slopes[2])), rate, 0.9, 0.01)
        for k, decay in enumerate((0.01, 0.0, 0.0)):
            velocity[k] = 0.9 * velocity[k] + rate * (slopes[k] - decay * expected[k])
            expected[k] = expected[k] + velocity[k]
    for parameter, value in zip(machine.parameters, expected, strict=True):
        np.testing.assert_allclose(parameter, value, rtol=0, atol=1e-14)


def test_the_average_is_the_mean_of_what_was_taken_in():
    rng = np.random.default_rng(1)
    machine = some_machine(rng)
    ascent = at_rest(machine)
    seen = []
    for _ in range(5):
        machine.parameters[0][:] += rng.normal(size=(4, 3))
        average(machine, ascent)
        seen.append(machine.parameters[0].copy())
    assert ascent.n_averaged == 5
    np.testing.assert_allclose(ascent.average[0], np.mean(seen, axis=0), rtol=0, atol=1e-14)
