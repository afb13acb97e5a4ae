"""Errors of both ends and of the gap are as large as they say; the interval is never reversed.

Weights are drawn as annealing near equilibrium draws them: log weights of forward chains are normal with mean log Z -
s^2 / 2 and variance s^2, those of reverse chains have mean log Z + s^2 / 2 and, here, an example's own part.
"""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom

from meltpoint.defaults import Settings
from meltpoint.estimators import particles as particles_module
from meltpoint.estimators.ais import log_z_of
from meltpoint.estimators.evidence import Evidence, Finding
from meltpoint.estimators.limits import mean_log_prob_limits
from meltpoint.estimators.particles import Melted
from meltpoint.models.log_f import LogF
from meltpoint.results import compose as composing
from meltpoint.results.compose import compose
from meltpoint.statistics.certificate import Certificate
from meltpoint.statistics.estimate import Estimate

POPULATION, EXAMPLES, LOG_Z = 200, 25, 10.0
RNG = np.random.default_rng(1)
LOG_F = RNG.normal(-60, 8, POPULATION)  # a spread that the control variate takes out
HARDNESS = RNG.normal(0, 0.5, POPULATION)
REPEATS = 500


@pytest.fixture
def uncertified(monkeypatch):
    """Certificates take most of the time, and are tested elsewhere."""
    certificate = Certificate(0.0, 0.99, "")
    monkeypatch.setattr(composing, "certify_mean_log_prob", lambda *_: (certificate, 0.0))


def simulated(
    rng,
    particles,
    spread=0.4,
    chains=3,
    ais_chains=120,
    examples=EXAMPLES,
    noise=0.0,
    evidence=None,
    exact_log_z=None,
):
    """A report of weights drawn at random; `noise` is the error of log f, as deep models have it."""
    chosen = rng.choice(POPULATION, examples, replace=False)
    forward = rng.normal(LOG_Z - spread**2 / 2, spread, ais_chains)
    reverse = rng.normal(LOG_Z + spread**2 / 2, spread, (examples, chains)) + HARDNESS[chosen, np.newaxis]
    estimated = LOG_F + rng.normal(0, noise, POPULATION)
    return compose(
        model="RBM",
        settings=Settings(examples=examples, chains=chains, ais_chains=ais_chains, particles=particles),
        log_f=LogF(
            estimated,
            np.full(POPULATION, noise),
            estimated,
            np.zeros((POPULATION, 2)),
            is_exact=noise == 0,
        ),
        log_z=log_z_of(forward),
        melted=Melted(LOG_F[chosen, np.newaxis] - reverse, reverse),
        positions=chosen,
        exact_log_z=exact_log_z,
        evidence=evidence,
    )


@cache
def spreads(particles, repeats=REPEATS, **changes):
    """For each side: its empirical standard deviation, and the root mean square of the claimed ones."""
    reports = [simulated(np.random.default_rng([2, k]), particles, **changes) for k in range(repeats)]
    found = {}
    for side in ("conservative", "optimistic", "gap"):
        estimates = [getattr(report, side) for report in reports]
        claimed = math.sqrt(np.mean([estimate.stderr**2 for estimate in estimates]))
        found[side] = float(np.std([estimate.value for estimate in estimates])), claimed
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("uncertified")
@pytest.mark.parametrize("particles", [None, 1, 41, 5])
def test_errors_are_as_large_as_they_say(particles):
    for side, (actual, claimed) in spreads(particles).items():
        # A standard deviation from 500 draws is known to 3.2%: 15% are more than four and a half of those (1e-5).
        assert claimed / actual > 0.85
        # In three groups the first order of the gap's error cancels, and what is claimed is a little too much.
        assert claimed / actual < (1.4 if side == "gap" and particles == 41 else 1.15)


@pytest.mark.slow
@pytest.mark.usefixtures("uncertified")
@pytest.mark.parametrize("particles", [2, 5])
def test_errors_of_small_groups_are_as_large_as_they_say(particles, monkeypatch):
    """Weights of spread 1, of which the few in a group do not tell the error of their sum."""
    for actual, claimed in spreads(particles, repeats=300, spread=1.0).values():
        # A standard deviation from 300 draws is known to 4.1%: 18% are more than four of those (1e-5).
        assert claimed / actual == pytest.approx(1, abs=0.18)
    # The mutant that asks each group for its own error has none with one chain, and is too sure with four.
    monkeypatch.setattr(particles_module, "_ENOUGH_GROUPS", 10**9)
    actual, claimed = spreads(particles, repeats=300, spread=1.0 + 1e-9)["conservative"]
    assert not claimed / actual > 0.92


@pytest.mark.slow
@pytest.mark.usefixtures("uncertified")
@pytest.mark.parametrize("particles", [None, 1])
def test_with_an_error_of_log_f_too(particles):
    for actual, claimed in spreads(particles, noise=0.5).values():
        assert claimed / actual == pytest.approx(1, abs=0.15)


@pytest.mark.slow
@pytest.mark.usefixtures("uncertified")
def test_the_gap_is_known_better_than_its_ends():
    found = spreads(None)
    assert found["gap"][0] < 0.2 * min(found["conservative"][0], found["optimistic"][0])
    assert found["gap"][1] < 0.2 * min(found["conservative"][1], found["optimistic"][1])
    # The mutant that takes the two ends for independent claims five times as much.
    independent = math.hypot(found["conservative"][1], found["optimistic"][1])
    assert independent > 5 * found["gap"][0]
    # With one particle they are independent.
    found = spreads(1)
    independent = math.hypot(found["conservative"][1], found["optimistic"][1])
    assert independent == pytest.approx(found["gap"][1], rel=0.02)


@pytest.mark.slow
@pytest.mark.usefixtures("uncertified")
def test_the_common_error_of_the_forward_chains_is_not_left_out():
    actual, claimed = spreads(None)["conservative"]
    alone = [simulated(np.random.default_rng([2, k]), None).gap.stderr for k in range(20)]
    assert np.mean(alone) < 0.2 * actual  # over examples alone: a mutant that is rejected
    assert claimed > 0.8 * actual


@pytest.mark.slow
@pytest.mark.usefixtures("uncertified")
@pytest.mark.parametrize("particles", [None, 1])
def test_the_interval_holds_the_truth(particles):
    truth = LOG_F.mean() - LOG_Z
    missed = 0
    for k in range(REPEATS):
        low, high = simulated(np.random.default_rng([3, k]), particles).between
        missed += not low <= truth <= high
    # 99% are promised; more than this is a false alarm once in 10,000 changes of the random numbers.
    assert missed <= binom.isf(1e-4, REPEATS, 0.01)


@pytest.mark.usefixtures("uncertified")
def test_the_control_variate_takes_the_spread_of_log_f_out():
    report = simulated(np.random.default_rng(0), None)
    assert report.conservative.stderr < 0.1
    assert report.control_variate_gain * report.conservative.stderr > 0.8 * 8 / math.sqrt(EXAMPLES) * 0.9


@pytest.mark.slow
@pytest.mark.usefixtures("uncertified")
def test_all_examples_leave_nothing_to_chance_but_the_chains():
    actual, claimed = spreads(None, repeats=200, examples=POPULATION)["gap"]
    assert claimed / actual == pytest.approx(1, abs=0.25)  # five standard deviations
    assert actual < 0.7 * spreads(None)["gap"][0]


finite = st.floats(-1e5, 1e5)


@settings(max_examples=min(60, settings().max_examples))
@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.integers(1, 6), st.booleans())
def test_an_interval_is_never_reversed_nor_nan(data, examples, chains, ais_chains, deep):
    log_f = data.draw(hnp.arrays(np.float64, 5, elements=finite))
    melted = Melted(*data.draw(hnp.arrays(np.float64, (2, examples, chains), elements=finite)))
    forward = data.draw(hnp.arrays(np.float64, ais_chains, elements=finite))
    report = compose(
        model="RBM",
        settings=Settings(particles=data.draw(st.none() | st.integers(1, ais_chains + 1))),
        log_f=LogF(log_f, np.full(5, 0.3 if deep else 0.0), log_f, is_exact=not deep),
        log_z=log_z_of(forward),
        melted=melted,
        positions=np.arange(examples),
    )
    low, high = report.between
    assert low <= high
    assert low <= report.conservative.value
    assert high >= min(0.0, report.optimistic.value)
    if not math.isfinite(report.conservative.stderr):
        assert low == -math.inf
    str(report)


estimates = st.builds(
    lambda value, error, df: Estimate(value, abs(error), "difference", "", df=df),
    st.floats(),
    st.floats(),
    st.floats(),
)


@given(estimates, st.tuples(finite, finite), st.tuples(finite, finite), st.floats(1e-6, 0.5))
def test_nor_is_that_of_any_numbers(conservative, log_f, log_z, alpha):
    low, high = mean_log_prob_limits(tuple(sorted(log_f)), tuple(sorted(log_z)), conservative, alpha)
    assert low <= high
    if math.isfinite(conservative.value):
        assert low <= conservative.value - conservative.margin(alpha / 4) or low == -math.inf


def test_without_evidence_agreement_is_not_trusted_and_with_it_it_is():
    report = simulated(np.random.default_rng(0), None)
    assert report.verdict.reason == "unchecked"
    assert report.evidence is None
    silent = Evidence((Finding("uniform", LOG_Z, 0.1, 1.0, lacking=0.0, stderr=0.0, rare=0.0),))
    report = simulated(np.random.default_rng(0), None, evidence=silent)
    assert report.verdict.reason == "agree"
    assert report.evidence == silent


def test_what_other_starts_found_widens_the_interval_downwards():
    plain = simulated(np.random.default_rng(0), None).between
    missing = Evidence((Finding("uniform", LOG_Z, 0.1, 0.5, lacking=1.0, stderr=0.1, rare=0.0),))
    report = simulated(np.random.default_rng(0), None, evidence=missing)
    assert report.between[1] == plain[1]
    assert report.between[0] < plain[0] - math.log(2)
    assert report.verdict.reason == "modes"


def test_an_exact_value_outside_is_said_and_called_exact_only_if_log_f_is():
    silent = Evidence((Finding("uniform", LOG_Z, 0.1, 1.0, lacking=0.0, stderr=0.0, rare=0.0),))
    right = simulated(np.random.default_rng(0), None, evidence=silent, exact_log_z=LOG_Z)
    assert right.verdict.reason == "agree"
    assert right.between[0] <= right.exact.value <= right.between[1]
    assert right.exact.value <= right.upper_bound == right.exact.value + LOG_Z - right.log_z_certificate.bound
    wrong = simulated(np.random.default_rng(0), None, evidence=silent, exact_log_z=LOG_Z + 3)
    assert (wrong.verdict.reason, wrong.verdict.trusted) == ("exact", False)
    deep = simulated(np.random.default_rng(0), None, noise=0.01, evidence=silent, exact_log_z=LOG_Z + 3)
    assert deep.verdict.reason != "exact"
    assert deep.upper_bound is None


@pytest.mark.usefixtures("uncertified")
@pytest.mark.parametrize("densities", [False, True])
def test_only_densities_exceed_one_whatever_the_model_is_called(densities):
    rng = np.random.default_rng(0)
    forward = rng.normal(-80, 0.4, 50)
    melted = Melted(LOG_F[:20, np.newaxis] - rng.normal(-80, 0.4, (20, 3)), rng.normal(-80, 0.4, (20, 3)))
    log_f = LogF(LOG_F, np.zeros(POPULATION), LOG_F, is_exact=True)
    report = compose(
        model="RBM of gaussian noise",
        settings=Settings(),
        log_f=log_f,
        log_z=log_z_of(forward),
        melted=melted,
        positions=np.arange(20),
        densities=densities,
    )
    assert report.optimistic.value > 0
    assert (report.between[1] > 0) == (report.upper_bound > 0) == ("density" in report.unit) == densities
