"""Every kind of unit answers by the definition: a state has probability proportional to exp(input · value)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.errors import InputError
from meltpoint.layers import TWO_STATE, Spin, unit_named

every_unit = pytest.mark.parametrize("unit", TWO_STATE.values(), ids=repr)
inputs = hnp.arrays(np.float64, st.integers(1, 5), elements=st.floats(-30, 30))


def probabilities(unit, t):
    """(state, unit) by the definition."""
    weights = np.exp(np.multiply.outer(np.array(unit.values), t))
    return weights / weights.sum(axis=0)


@every_unit
@given(t=inputs)
def test_partition_mean_and_weight(unit, t) -> None:
    values = np.array(unit.values)
    weights = np.exp(np.multiply.outer(values, t))
    np.testing.assert_allclose(unit.log_partition(t), np.log(weights.sum(axis=0)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(unit.mean(t), values @ probabilities(unit, t), rtol=1e-10, atol=1e-12)
    for state in range(unit.n_states):
        states = np.full(t.shape, state, np.uint8)
        np.testing.assert_array_equal(unit.log_weight(states, t), values[state] * t)


@every_unit
@given(t=inputs)
def test_draws_follow_the_probabilities(unit, t) -> None:
    n = 1000
    lattice = (np.arange(n)[:, np.newaxis] + 0.5) / n
    drawn = unit.draw(t, np.broadcast_to(lattice, (n, t.size)))
    assert drawn.dtype == np.uint8
    for state, p in enumerate(probabilities(unit, t)):
        assert (np.abs((drawn == state).mean(axis=0) - p) <= 0.5 / n + 1e-12).all()


@every_unit
@given(counts=hnp.arrays(np.float64, (2, 4), elements=st.floats(0, 1000)), smoothing=st.floats(0.01, 2))
def test_a_bias_from_counts_has_the_smoothed_rates(unit, counts, smoothing) -> None:
    rates = (counts + smoothing) / (counts + smoothing).sum(axis=0)
    np.testing.assert_allclose(
        probabilities(unit, unit.bias_from_counts(counts, smoothing)), rates, rtol=1e-9
    )


@every_unit
@given(
    states=hnp.arrays(np.uint8, (3, 2), elements=st.integers(0, 1)),
    dtype=st.sampled_from([np.int8, np.float64]),
)
def test_values_and_states_are_one_to_one(unit, states, dtype) -> None:
    values = unit.decode(states).astype(dtype)
    np.testing.assert_array_equal(values, np.array(unit.values)[states])
    np.testing.assert_array_equal(unit.encode(values, "x"), states)
    np.testing.assert_allclose(values, unit.offset + unit.scale * states)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            [[0, 1]],
            r"values from 0 to 1, expected only -1 and \+1.*: convert zeros and ones to spins: 2 \* x - 1",
        ),
        ([[-1.0, np.nan]], r"NaN in x, expected -1 and \+1"),
        ([[-2, 1]], "values from -2 to 1"),
        ([["up"]], "x of type <U2"),
    ],
)
def test_what_is_not_a_spin(values, said) -> None:
    with pytest.raises(InputError, match=said):
        unit_named("spin").encode(np.array(values), "x")


def test_unknown_units() -> None:
    with pytest.raises(InputError, match="found units 'potts', expected 'bernoulli' or 'spin'"):
        unit_named("potts")


@pytest.mark.slow
def test_a_constant_left_out_of_a_units_partition_is_rejected(monkeypatch) -> None:
    whole = Spin.log_partition
    monkeypatch.setattr(Spin, "log_partition", lambda self, t: whole(self, t) - np.log(2))
    with pytest.raises(AssertionError):
        test_partition_mean_and_weight(unit_named("spin"))
