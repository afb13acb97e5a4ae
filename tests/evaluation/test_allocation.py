"""The size of the next stage: enough if it can be, as cheap as it can be, and never beyond the budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meltpoint.evaluation.allocation import Measured, first_size, measure, next_size
from meltpoint.evaluation.case import Size

from meltpoint.estimators.ais import log_z_of

TYPICAL = Measured(2000, np.array([1.1, 0.85, 0.75]), np.array([2.2, 1.5, 1.2]), 1.5)


def upper(measured, size, sigmas=2.7):
    values = (np.array([v]) for v in (size.steps, size.examples, size.chains, size.ais_chains))
    return float(measured.upper(*values, sigmas)[0])


measurements = st.builds(
    lambda steps, loss, gains, spread, log_variance, power: Measured(
        steps, loss * np.cumprod([1.0, *gains]), spread * np.cumprod([1.0, *gains]), log_variance, 0.0, power
    ),
    st.integers(100, 50_000),
    st.floats(0.001, 20),
    st.lists(st.floats(0.3, 1.0), max_size=2),
    st.floats(0.001, 50),
    st.floats(0.001, 10),
    st.floats(0.3, 1.0),
)


@settings(max_examples=30)
@given(
    measurements, st.floats(0.01, 2), st.integers(2, 20_000), st.sampled_from([1, 2]), st.floats(1e5, 1e10)
)
def test_a_stage_is_affordable_and_better_than_what_is_known(measured, target, available, legs, affordable):
    known = 100.0
    size = next_size(measured, target, 2.7, known, available, legs, affordable)
    if size is None:
        return
    assert 1 <= size.examples <= available
    assert 1 <= size.chains <= measured.losses.size
    again = size.steps == 10 * measured.steps  # where the prediction would reach too far
    assert size.work(legs) <= affordable
    assert upper(measured, size) < 0.9 * known or again


@settings(max_examples=30)
@given(measurements, st.floats(0.05, 2))
def test_with_time_enough_the_target_is_met_or_measured_for_again(measured, target):
    size = next_size(measured, target, 2.7, 1e9, 10_000, 1, 1e15)
    assert upper(measured, size) <= 0.85 * target or size.steps in (10 * measured.steps, 10_000_000)


def test_fewer_chains_with_more_steps_where_chains_help_little_and_more_where_they_help():
    assert next_size(TYPICAL, 0.3, 2.7, 9.0, 10_000, 1, 1e9).chains == 1
    helpful = Measured(2000, np.array([1.1, 0.2, 0.05]), np.array([2.2, 0.4, 0.1]), 0.01)
    assert next_size(helpful, 0.3, 2.7, 9.0, 10_000, 1, 1e9).chains == 3


def test_a_target_that_seems_out_of_reach_is_measured_for_again_if_half_of_what_is_left_pays_for_it():
    slow = Measured(20_000, np.array([0.35, 0.25, 0.2]), np.array([0.37, 0.2, 0.11]), 0.42, power=0.5)
    for affordable, steps in ((1e15, 200_000), (9e7, 200_000)):
        assert next_size(slow, 0.1, 2.75, 0.44, 10_000, 1, affordable).steps == steps
    rest = next_size(slow, 0.1, 2.75, 0.44, 10_000, 1, 8e7)
    assert 4e7 < rest.work(1) <= 8e7


def test_a_poor_budget_gives_the_best_it_can_buy_and_none_if_that_is_nothing():
    size = next_size(TYPICAL, 0.1, 2.7, 9.0, 10_000, 1, 1e6)
    assert 0.5e6 < size.work(1) <= 1e6
    assert next_size(TYPICAL, 0.1, 2.7, 0.3, 10_000, 1, 1e6) is None
    assert next_size(TYPICAL, 0.1, 2.7, 9.0, 10_000, 1, 0.0) is None
    assert next_size(TYPICAL, 0.1, 2.7, 9.0, 10_000, 1, -1e9) is None


@given(st.integers(1, 10_000), st.sampled_from([1, 2]), st.floats(-1e6, 1e9))
def test_the_first_stage_is_small(available, legs, affordable):
    size = first_size(available, legs, affordable)
    assert size.examples == min(50, available)
    assert 50 <= size.steps <= 2000
    assert size.steps == 50 or size.work(legs) <= affordable / 3 * 1.01


def test_losses_are_those_of_one_chain_and_of_several():
    rng = np.random.default_rng(0)
    log_f = rng.normal(0, 30, 200)
    log_z = log_z_of(np.full(100, 10.0) + rng.normal(0, 0.1, 100))
    weights = log_f[:, np.newaxis] - 10 - 0.5 + rng.normal(-0.5, 1.0, (200, 3))  # p_ann: half a nat below p
    found = measure(weights, log_f, log_z, 1000)
    assert found.losses[0] == pytest.approx(1.0, abs=0.25)
    assert 0.5 < found.losses[2] < found.losses[1] < found.losses[0]
    assert found.spreads[0] == pytest.approx(1.0, rel=0.5)
    assert found.spreads[2] < 0.7 * found.spreads[0]
    assert found.log_variance == pytest.approx(0.01, rel=0.7)


def test_the_power_of_the_steps_is_learnt():
    later = Measured(8000, np.array([0.55]), np.array([1.0]), 0.4)
    assert later.after(TYPICAL).power == pytest.approx(0.5)
    assert later.after(None).power == 1
    assert Measured(8000, np.array([1.2]), np.array([1.0]), 0.4).after(TYPICAL).power == pytest.approx(0.3)
    assert Measured(8000, np.array([0.1]), np.array([1.0]), 0.4).after(TYPICAL).power == 1


def test_work_counts_heating():
    assert Size(10, 5, 3, 7).work(1) == 10 * (15 + 7)
    assert Size(10, 5, 3, 7).work(2) == 10 * (30 + 7)
