"""log Z from AIS chains: its error bars are those of a report."""

import numpy as np
import pytest
from scipy.stats import t

import meltpoint as mp
from meltpoint.estimators.ais import log_z_of


def test_a_margin_is_student_s():
    rng = np.random.default_rng(0)
    for log_weights in rng.normal(0, 2, (5, 8)):
        log_z = log_z_of(log_weights)
        assert log_z.margin(0.005) == pytest.approx(t.isf(0.005, max(1, log_z.ess - 1)) * log_z.stderr)
        assert log_z.margin(0.005) > 3 * log_z.stderr  # 2.6 of a normal distribution
    assert log_z_of(np.zeros(1)).margin(0.1) == np.inf


def test_a_report_has_the_margin_of_its_log_z():
    rng = np.random.default_rng(1)
    rbm = mp.RBM(rng.normal(size=(6, 3)), np.zeros(6), np.zeros(3))
    report = mp.evaluate(rbm, rng.integers(0, 2, (5, 6)), steps=3, ais_chains=10, base="uniform")
    assert report.log_z.margin(0.005) == pytest.approx(report.optimistic.margin(0.005))
    assert mp.Report.from_dict(report.to_dict()).log_z.margin(0.005) == report.log_z.margin(0.005)
