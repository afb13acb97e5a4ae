"""The method's own numbers. Whoever changes them changes METHOD too: runs of two methods must not be mixed."""

import numpy as np

import meltpoint as mp
from meltpoint.runs.specification import METHOD

MODEL = mp.RBM(np.sin(np.arange(12.0)).reshape(4, 3), np.cos(np.arange(4.0)), np.zeros(3))
HOW = {
    "base": mp.data_rates([[0, 1, 1, 0], [1, 1, 0, 0]]),
    "steps": 7,
    "chains": 3,
    "seed": 1,
    "precision": "float64",
}


def test_the_same_call_gives_what_it_gave_when_the_method_got_its_number():
    found = (
        mp.ais_log_z(MODEL, **HOW).log_weights,
        mp.raise_log_prob(MODEL, [[0, 1, 1, 0]], **HOW).log_weights[0],
    )
    expected = {
        2: [[6.2618924302, 5.1920837914, 6.4938451160], [-3.5267433862, -4.1909770193, -4.0355399485]]
    }
    # Rounding may differ between machines; another draw changes a weight by far more.
    np.testing.assert_allclose(found, expected[METHOD], rtol=0, atol=1e-8)
