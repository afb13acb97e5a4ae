"""What is certain without chains: log Z's ceiling, and intervals of extreme models that never go beyond it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meltpoint as mp
from meltpoint.estimators.limits import mean_log_prob_limits
from meltpoint.statistics.estimate import Estimate
from oracle.driving import models


def _potts_rbm(rng, scale):
    return mp.RBM(
        rng.normal(0, scale, (3, 4, 2)),
        rng.normal(0, scale, (3, 4)),
        rng.normal(0, scale, 2),
        visible="potts",
    )


def _gaussian_rbm(rng, scale):
    return mp.RBM(
        rng.normal(0, scale, (3, 4)), rng.normal(0, scale, 3), rng.normal(0, 1, 4), visible="gaussian"
    )


def _ising(rng, scale):
    couplings = np.triu(rng.normal(0, scale, (6, 6)), 1)
    return mp.Ising(couplings + couplings.T, rng.normal(0, scale, 6), hidden=[1, 4])


def _potts(rng, scale):
    couplings = {(i, j): rng.normal(0, scale, (3, 3)) for j in range(4) for i in range(j)}
    return mp.Potts(couplings, [rng.normal(0, scale, 3) for _ in range(4)])


KINDS = {
    "rbm": lambda rng, scale: models.rbm(int(rng.integers(1000)), 5, 4, scale=scale),
    "spin dbm": lambda rng, scale: models.dbm(int(rng.integers(1000)), [3, 2, 3], scale, units="spin"),
    "deep dbm": lambda rng, scale: models.dbm(int(rng.integers(1000)), [3, 2, 2, 2], scale),
    "dbn": lambda rng, scale: models.dbn(int(rng.integers(1000)), [3, 4, 2], scale),
    "potts rbm": _potts_rbm,
    "gaussian rbm": _gaussian_rbm,
    "ising": _ising,
    "potts": _potts,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 20.0])
def test_no_log_z_is_above_its_ceiling(kind, scale):
    for seed in range(8):
        model = KINDS[kind](np.random.default_rng(seed), scale)
        exact = mp.exact_log_z(model, threads=1)
        assert exact <= model.log_z_ceiling + 1e-9 * max(1.0, abs(exact))
        assert math.isfinite(model.log_z_ceiling)


def test_it_is_exact_where_nothing_is_coupled():
    rng = np.random.default_rng(0)
    for model in (
        mp.RBM(np.zeros((4, 3)), rng.normal(size=4), rng.normal(size=3)),
        mp.RBM(np.zeros((4, 3)), rng.normal(size=4), rng.normal(size=3), visible="gaussian"),
        mp.RBM(np.zeros((4, 3, 2)), rng.normal(size=(4, 3)), rng.normal(size=2), visible="potts"),
    ):
        assert model.log_z_ceiling == pytest.approx(mp.exact_log_z(model, threads=1), abs=1e-12)


def test_ends_stay_within_what_is_certain():
    poor = Estimate(-4.0, 1.0, "conservative", "", df=0.01)
    # One degree of freedom at least: fewer gave ends of -1e46 and beyond.
    assert -140 < mean_log_prob_limits((-3.0, -3.0), (1.0, 1.5), poor, 0.01)[0] < -100
    low, high = mean_log_prob_limits((-3.0, -3.0), (-9.0, 1.5), poor, 0.01, log_z_ceiling=7.0, most=0.0)
    assert (low, high) == (-10.0, 0.0)
    unknown = Estimate(math.nan, math.nan, "conservative", "")
    assert mean_log_prob_limits((-3.0, -3.0), (-math.inf, math.inf), unknown, 0.01) == (-math.inf, math.inf)
    assert mean_log_prob_limits((5.0, 5.0), (1.0, 1.5), poor, 0.01, log_z_ceiling=1.0, most=0.0) == (0.0, 0.0)


@pytest.mark.slow
@given(
    st.integers(0, 10**6),
    st.floats(1.0, 60.0),
    st.sampled_from([(2, 2, 2), (5, 3, 2), (60, 20, 4)]),
    st.sampled_from([1, 10, 100]),
)
@settings(max_examples=20, deadline=None)
def test_reports_of_extreme_models_have_sensible_ends(seed, scale, sizes, steps):
    rng = np.random.default_rng(seed)
    model = mp.RBM(rng.normal(0, scale, (8, 4)), rng.normal(0, scale, 8), rng.normal(0, scale, 4))
    test = rng.integers(0, 2, (20, 8))
    ais_chains, examples, chains = sizes
    report = mp.evaluate(
        model,
        test,
        rng.integers(0, 2, (30, 8)),
        steps=steps,
        schedule="linear",
        ais_chains=ais_chains,
        examples=examples,
        chains=chains,
        exact=False,
        threads=1,
        seed=seed,
    )
    low, high = report.between
    assert low <= high <= 0
    assert low >= model.log_f(test).mean() - model.log_z_ceiling - 1e-9
    assert report.upper_bound <= 0
