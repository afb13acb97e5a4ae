"""The method's own numbers. Whoever changes them changes METHOD too: runs of two methods must not be mixed."""

import numpy as np
import pytest

import meltpoint as mp
from evaluation.kept import DEEP, MODEL, STACK, evaluate
from meltpoint.runs.specification import METHOD

SMALL = mp.RBM(np.sin(np.arange(12.0)).reshape(4, 3), np.cos(np.arange(4.0)), np.zeros(3))
HOW = {
    "base": mp.data_rates([[0, 1, 1, 0], [1, 1, 0, 0]]),
    "steps": 7,
    "chains": 3,
    "seed": 1,
    "precision": "float64",
}


def test_the_same_call_gives_what_it_gave_when_the_method_got_its_number():
    found = (
        mp.ais_log_z(SMALL, **HOW).log_weights,
        mp.raise_log_prob(SMALL, [[0, 1, 1, 0]], **HOW).log_weights[0],
    )
    expected = {
        5: [[6.2618924302, 5.1920837914, 6.4938451160], [-3.5267433862, -4.1909770193, -4.0355399485]]
    }
    # Rounding may differ between machines; another draw changes a weight by far more.
    np.testing.assert_allclose(found, expected[METHOD], rtol=0, atol=1e-8)


# log Z, and the mean of RAISE's log weights with one particle.
REPORTS = {
    5: [
        (MODEL, "data", "friction", 59.12143090622401, -25.466318642141392),
        (MODEL, "uniform", "friction", 59.08642489891388, -25.481194918954177),
        (DEEP, "data", "linear", 39.720411513342626, -21.78279812744751),
        (DEEP, "uniform", "linear", 39.70859453251516, -21.756656164189568),
        (STACK, "data", "friction", 40.19691063977848, -24.933618743341366),
        (STACK, "uniform", "friction", 40.15360139108521, -25.024224772531465),
    ]
}


@pytest.mark.parametrize(
    ("model", "base", "schedule", "log_z", "mean_log_weight"),
    REPORTS[METHOD],
    ids=lambda value: repr(value) if isinstance(value, mp.RBM | mp.DBM | mp.DBN) else None,
)
def test_reports_are_made_of_the_same_weights(model, base, schedule, log_z, mean_log_weight):
    report = evaluate(model, base=base, schedule=schedule)
    assert report.log_z.value == pytest.approx(log_z, rel=0, abs=1e-9)
    assert report.per_example.log_weights.mean() == pytest.approx(mean_log_weight, rel=0, abs=1e-9)
