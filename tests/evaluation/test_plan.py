"""The size of the next stage: enough if it can be, as cheap as it can be, and never beyond the budget."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.defaults import Settings
from meltpoint.estimators.ais import log_z_of
from meltpoint.evaluation.plan import (
    _EVEN_VARIANCE,
    LEAST_AIS_CHAINS,
    Measured,
    Planner,
    log_variance_of,
    measure,
    upper_variance,
)
from meltpoint.evaluation.reporting import FinishedStage
from meltpoint.evaluation.stage import Size
from meltpoint.results.report import PerExample
from meltpoint.runs.run import Spent
from results.made import made

SIGMAS = 2.7


class Knowing(Planner):
    """A planner that was told how small the smallest interval is so far."""

    known = math.inf

    @property
    def _known(self) -> float:
        return self.known


def planner_of(available, passes, target=0.1, known=math.inf, exact=True):
    nothing: Any = SimpleNamespace(spent=Spent())
    settings = Settings(gap=target, evidence=False)
    planner = Knowing(settings, "data", nothing, available, passes, exact)
    planner.known = known
    return planner


def next_size(measured, target, sigmas, known, available, passes, affordable):
    return planner_of(available, passes, target, known)._next(measured, sigmas, affordable)


def first_size(available, passes, affordable, exact=True):
    return planner_of(available, passes, exact=exact)._first(affordable)


def half_width(measured, size, sigmas=SIGMAS):
    steps, examples = np.array([size.steps]), np.array([size.examples])
    return measured.half_widths(steps, size.chains, size.ais_chains, examples, sigmas).item()


def predict(measured, steps, chains, ais_chains):
    return tuple(value.item() for value in measured.predict(np.array([steps]), chains, ais_chains))


def measurement(steps=2000, loss=1.0, chains=2, log_variance=1.0, seed=0, **changes):
    """What a stage of fifty examples measures near equilibrium: a variance of twice the loss."""
    rng = np.random.default_rng(seed)
    log_ratios = rng.normal(loss, math.sqrt(2 * loss), (50, chains))
    return Measured(steps, log_ratios, np.zeros_like(log_ratios), log_variance, **changes)


measurements = st.builds(
    measurement,
    steps=st.integers(100, 50_000),
    loss=st.floats(0.001, 20),
    chains=st.integers(1, 3),
    log_variance=st.floats(0.001, 10),
    seed=st.integers(0, 99),
    particles=st.none() | st.integers(1, 500),
    power=st.floats(0.3, 1.0),
)


@pytest.mark.slow
@settings(max_examples=15)
@given(
    measurements, st.floats(0.01, 2), st.integers(2, 20_000), st.sampled_from([1, 2]), st.floats(1e5, 1e10)
)
def test_a_stage_is_affordable_and_of_what_there_is(measured, target, available, segments, affordable):
    size = next_size(measured, target, SIGMAS, 100.0, available, segments, affordable)
    if size is not None:
        assert size.work(segments) <= affordable
        assert 1 <= size.examples <= available
        assert 1 <= size.chains <= measured.log_ratios.shape[1]
        assert min(size.steps, size.ais_chains) >= 1


@pytest.mark.slow
@settings(max_examples=10)
@given(measurements, st.floats(0.05, 2))
def test_with_time_enough_the_target_is_met_or_measured_for_with_more_steps(measured, target):
    size = next_size(measured, target, SIGMAS, 1e9, 10_000, 1, 1e15)
    assert half_width(measured, size) <= target or size.steps > measured.steps


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.02, 0.1, 0.5])
def test_a_smaller_target_takes_no_less_work(target):
    measured = measurement()
    small, large = (next_size(measured, goal, SIGMAS, 1e9, 10_000, 1, 1e15) for goal in (target, 2 * target))
    # Where a target is too far for the prediction, a stage in between is measured first.
    if half_width(measured, small) <= target:
        assert small.work(1) >= large.work(1)
    else:
        assert small.steps > measured.steps


def test_nothing_that_is_affordable_and_quicker_meets_the_target():
    measured, target = measurement(loss=0.3), 0.3
    size = next_size(measured, target, SIGMAS, 1e9, 10_000, 1, 1e12)
    assert half_width(measured, size) <= target
    rng = np.random.default_rng(0)
    for _ in range(300):  # a third less work, and a fifth better than what was asked for: none such
        other = Size(
            int(10 ** rng.uniform(1.7, 5)), int(rng.integers(50, 2000)), 1, int(10 ** rng.uniform(1.9, 4))
        )
        even = measured.log_variance_at(other.steps) <= _EVEN_VARIANCE
        if even and other.ais_chains >= LEAST_AIS_CHAINS and other.work(1) < 0.67 * size.work(1):
            assert half_width(measured, other) > 0.8 * target


@pytest.mark.slow
def test_a_poor_budget_gives_the_best_it_can_buy_and_none_if_that_is_nothing():
    measured = measurement()
    size = next_size(measured, 0.01, SIGMAS, 9.0, 10_000, 1, 1e6)
    assert size.work(1) <= 1e6
    assert half_width(measured, size) < 9.0
    # What is known already is not computed again.
    assert next_size(measured, 0.01, SIGMAS, half_width(measured, size) / 2, 10_000, 1, 1e6) is None
    for nothing in (0.0, -1e9):
        assert next_size(measured, 0.01, SIGMAS, 9.0, 10_000, 1, nothing) is None


@given(st.integers(1, 10_000), st.sampled_from([1, 2]), st.floats(-1e6, 1e9))
def test_the_first_stage_is_small(available, segments, affordable):
    size = first_size(available, segments, affordable)
    assert 1 <= size.examples <= available
    least = first_size(available, segments, -1.0)
    assert size.steps == least.steps or size.work(segments) <= affordable
    assert first_size(available, segments, 1e15).work(segments) < 1e7


@settings(max_examples=min(40, settings().max_examples))
@given(measurements, st.integers(50, 10**6), st.integers(1, 3), st.integers(1, 5000))
def test_predictions_are_finite_and_no_worse_with_more_steps(measured, steps, chains, ais_chains):
    chains = min(chains, measured.log_ratios.shape[1])
    gap, spread, share = predict(measured, steps, chains, ais_chains)
    assert math.isfinite(gap)
    assert spread >= 0
    assert 0 <= share <= 1
    examples = np.array([50, 100, 1000])
    (widths,) = measured.half_widths(np.array([steps]), chains, ais_chains, examples, SIGMAS)
    assert (np.diff(widths[np.isfinite(widths)]) <= 1e-12).all()  # more examples
    assert (widths > 0).all()


def test_a_prediction_for_the_same_size_is_what_was_measured():
    for particles, n in ((None, 65), (5, 5), (1, 1)):
        measured = measurement(loss=0.8, particles=particles)
        found, _, share = predict(measured, 2000, 1, 64)
        g = measured.log_ratios
        by_hand = np.log((np.exp(g) + n - 1) / n)
        assert found == pytest.approx(by_hand.mean(), rel=1e-9)
        assert share == pytest.approx(1 - np.mean((n - 1) / (n - 1 + np.exp(g))), rel=1e-9)


def test_more_particles_more_steps_and_more_chains_close_the_gap():
    measured = measurement(loss=2.0)
    gaps = [predict(measured, 2000, 1, ais_chains)[0] for ais_chains in (1, 10, 100, 1000)]
    assert gaps == sorted(gaps, reverse=True)
    gaps = [predict(measured, steps, 1, 1)[0] for steps in (500, 2000, 8000, 64_000)]
    assert gaps == sorted(gaps, reverse=True)
    assert predict(measured, 2000, 2, 1)[0] < predict(measured, 2000, 1, 1)[0]
    alone = measurement(loss=2.0, particles=1)
    assert predict(alone, 2000, 1, 1000)[0] == pytest.approx(alone.loss, rel=1e-9)


def test_too_few_effective_chains_are_no_stage():
    measured = measurement(log_variance=4.0)  # of e^4 chains one counts
    assert half_width(measured, Size(2000, 50, 1, 64)) == math.inf
    assert half_width(measured, Size(2000, 50, 1, 16_384)) < math.inf


def test_the_error_of_log_z_is_that_of_lognormal_weights():
    nothing = np.zeros((50, 1))
    measured = Measured(2000, nothing, nothing, 1.5)
    assert measured.log_variance_at(2000) == 1.5
    assert measured.log_variance_at(8000) == pytest.approx(1.5 * 4**-0.7)
    assert measured.log_variance_at(1000) == pytest.approx(3.0)  # fewer steps: as 1 / steps
    for steps in (2000, 8000):
        error = math.sqrt(math.expm1(measured.log_variance_at(steps)) / 600)
        # RAISE lies at AIS's answer, and both have the error of log Z but for the share of its own weight.
        assert half_width(measured, Size(steps, 50, 1, 600)) == pytest.approx(SIGMAS * error, rel=2e-3)


def test_the_variance_is_that_of_the_weights_that_matter():
    rng = np.random.default_rng(3)
    symmetric = np.concatenate([rng.normal(0, 2, 5000), [0.0]])
    symmetric = np.concatenate([symmetric, -symmetric])
    assert upper_variance(symmetric) == pytest.approx(np.mean(symmetric**2), rel=1e-12)
    assert upper_variance(symmetric + 451.0) == pytest.approx(upper_variance(symmetric), rel=1e-9)
    # Chains that got stuck have no weight, however far they are behind.
    stuck = np.where(symmetric < 0, 10 * symmetric, symmetric)
    assert upper_variance(stuck) == pytest.approx(upper_variance(symmetric), rel=1e-12)
    # Where one of 256 chains is effective, the variance is still told to a third.
    few = rng.normal(0, math.sqrt(8.0), 256)
    assert log_z_of(few).ess < 256 * math.exp(-4)
    assert upper_variance(few) == pytest.approx(8.0, rel=1 / 3)


@pytest.mark.parametrize("loss", [0.05, 1.0, 5.0])
def test_where_chains_say_what_log_f_is_there_are_no_fewer_of_them(loss):
    """From one chain for an example, or two, the bias of log f's annealed estimate cannot be told."""
    for target in (0.1, 0.5):
        for affordable in (1e6, 1e12):
            heated = measurement(loss=loss, chains=4, heated=True)
            size = next_size(heated, target, SIGMAS, 1e9, 10_000, 2, affordable)
            assert size is None or size.chains == 4
    plain = measurement(loss=0.05, chains=4)
    assert next_size(plain, 0.5, SIGMAS, 1e9, 10_000, 1, 1e12).chains < 4


def test_a_hundred_chains_of_raise_at_least():
    assert first_size(10_000, 1, 1e12) == Size(2000, 50, 2, 256)
    assert first_size(10_000, 1, 1e12, exact=False) == Size(2000, 25, 4, 256)
    assert first_size(7, 1, 1e12).examples == 7


def test_the_first_stage_has_steps_that_tell_something_whatever_the_budget():
    assert first_size(10_000, 1, -1e9).steps == first_size(10_000, 1, 0.0).steps == 300
    assert first_size(10_000, 1, 1e12) == Size(2000, 50, 2, 256)


def test_what_no_size_makes_smaller_stays():
    plain, rough = (measurement(fixed_error=error) for error in (0.0, 0.5))
    size = Size(10**6, 10_000, 1, 16_384)
    assert half_width(rough, size) - half_width(plain, size) == pytest.approx(SIGMAS * 0.5, rel=0.1)


def finished(log_weights, log_reverse, log_f, log_z, particles=None, error=0.0):
    """A stage with 1,000 steps and these weights."""
    report = replace(
        made(),
        settings=Settings(steps=1000, particles=particles),
        per_example=PerExample(*np.zeros((3, len(log_f))), log_f, log_weights, log_reverse),
        log_z=log_z,
        log_f_error=error,
    )
    stage: Any = SimpleNamespace(size=Size(1000, len(log_f), log_weights.shape[1], len(log_z.log_weights)))
    result: Any = SimpleNamespace(stage=stage, log_weights=log_z.log_weights)
    return FinishedStage(result, report, None)


def test_what_is_measured_are_the_gaps_of_one_particle():
    rng = np.random.default_rng(0)
    log_f = rng.normal(0, 30, 200)
    log_z = log_z_of(np.full(100, 10.0) + rng.normal(0, 0.1, 100))
    log_ratios, deficits = rng.normal(1.0, 1.0, (200, 3)), rng.normal(0.5, 0.2, (200, 3))
    log_reverse = log_z.value + log_ratios
    log_weights = log_f[:, np.newaxis] - log_reverse - deficits
    found = measure(finished(log_weights, log_reverse, log_f, log_z, particles=7, error=0.25), heated=True)
    np.testing.assert_allclose(found.log_ratios, log_ratios, atol=1e-9)
    np.testing.assert_allclose(found.deficits, deficits, atol=1e-9)
    assert found.log_variance == upper_variance(log_z.log_weights)
    # The mean of log p by AIS less that of RAISE with one particle.
    assert found.loss == pytest.approx(np.mean(log_f[:, np.newaxis] - log_z.value - log_weights))
    assert (found.steps, found.heated, found.particles, found.fixed_error) == (1000, True, 7, 0.25)


def test_a_heavy_tail_shows_in_the_effective_chains_of_many():
    """One chain of 600 has half of the sum: no variance of those above the median tells that."""
    for n in (100, 600):
        log_z = log_z_of(np.append(np.random.default_rng(0).normal(0, 0.5, n - 1), math.log(n)))
        plain, heavy = upper_variance(log_z.log_weights), math.log(n / log_z.ess)
        assert heavy > 2 * plain
        stage = finished(np.zeros((5, 1)), np.zeros((5, 1)), np.zeros(5), log_z)
        assert measure(stage).log_variance == (heavy if n == 600 else plain)
        assert log_variance_of(log_z.log_weights) == (heavy if n == 600 else plain)


def test_the_power_of_the_steps_is_learnt():
    def of(steps, loss):
        values = np.full((9, 1), loss)
        return Measured(steps, values, np.zeros_like(values), 1.0)

    first = of(2000, 1.1)
    assert of(8000, 0.55).after(first).power == pytest.approx(0.5)
    assert of(8000, 0.55).after(None).power == 1
    assert of(8000, 0.1).after(first).power == 1  # no faster than the law
    slowest = of(8000, 1.2).after(first).power  # it grew
    assert 0 < slowest < 0.5
    assert of(1000, 0.55).after(first).power == 1  # fewer steps teach nothing
    assert of(8000, -0.1).after(first).power == 1


def test_work_counts_heating():
    assert Size(10, 5, 3, 7).work(1) == 10 * (15 + 7)
    assert Size(10, 5, 3, 7).work(2) == 10 * (30 + 7)


# Without examples, as log_z() plans.


def without_examples(target):
    nothing: Any = SimpleNamespace(spent=Spent())
    return Planner(Settings(gap=target), "model", nothing)


@pytest.mark.parametrize("variance", [0.01, 1.0])
def test_without_examples_steps_and_ais_chains_grow_with_what_is_missing(variance):
    measured = Measured(500, np.zeros((1, 1)), np.zeros((1, 1)), variance)
    small, large = (without_examples(target)._next(measured, SIGMAS, 1e12) for target in (0.01, 0.1))
    assert small.examples == large.examples == 0
    assert min(small.steps, large.steps) >= 1000
    assert small.work(1) > large.work(1)
    assert half_width(measured, small) <= 0.01
    assert measured.log_variance_at(small.steps) <= _EVEN_VARIANCE


def test_the_first_stage_without_examples_is_within_the_budget():
    planner = without_examples(0.1)
    assert planner._first(1e12) == Size(2000, 0, 2, 256)
    assert planner._first(1e5).steps < 2000
