"""Potts units answer by the definition: a state has probability proportional to exp of its own input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meltpoint.errors import InputError
from meltpoint.layers import Potts

inputs = st.integers(1, 5).flatmap(
    lambda q: hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.just(q)), elements=st.floats(-30, 30))
)


def probabilities(t):
    """(unit, state) by the definition."""
    weights = np.exp(t)
    return weights / weights.sum(axis=1, keepdims=True)


@given(t=inputs)
def test_partition_mean_and_weight(t) -> None:
    unit = Potts(t.shape[1])
    np.testing.assert_allclose(unit.log_partition(t), np.log(np.exp(t).sum(axis=1)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(unit.mean(t), probabilities(t), rtol=1e-12)
    states = np.indices((unit.q, len(t)))[0].astype(unit.dtype)
    np.testing.assert_array_equal(unit.log_weight(states, t), t.T)
    np.testing.assert_array_equal(unit.log_weight(states, np.broadcast_to(t, (unit.q, *t.shape))), t.T)


@given(t=inputs)
def test_draws_follow_the_probabilities(t) -> None:
    n, unit = 1000, Potts(t.shape[1])
    lattice = (np.arange(n)[:, np.newaxis] + 0.5) / n
    drawn = unit.draw(np.broadcast_to(t, (n, *t.shape)), np.broadcast_to(lattice, (n, len(t))))
    assert drawn.dtype == unit.dtype
    for state, p in enumerate(probabilities(t).T):
        assert (np.abs((drawn == state).mean(axis=0) - p) <= 1 / n + 1e-12).all()


@pytest.mark.slow
def test_draws_of_a_state_off_by_one_are_rejected(monkeypatch) -> None:
    whole = Potts.draw
    monkeypatch.setattr(
        Potts, "draw", lambda self, t, u: ((whole(self, t, u) + 1) % self.q).astype(self.dtype)
    )
    with pytest.raises(AssertionError):
        test_draws_follow_the_probabilities()


def test_a_state_without_weight_is_never_drawn() -> None:
    t = np.array([[-np.inf, 0.0, 0.1, -np.inf]])
    for u in (2.0**-32, 0.5, 1.0):
        assert Potts(4).draw(t, np.array([u])) in (1, 2)


@given(
    counts=hnp.arrays(np.float64, (3, 4), elements=st.floats(0, 1000)),
    smoothing=st.floats(0.01, 2),
)
def test_a_bias_from_counts_has_the_smoothed_rates(counts, smoothing) -> None:
    rates = ((counts + smoothing) / (counts + smoothing).sum(axis=0)).T
    np.testing.assert_allclose(probabilities(Potts(3).bias_from_counts(counts, smoothing)), rates, rtol=1e-9)


def test_a_bias_from_states_is_one_from_their_probabilities() -> None:
    states = np.random.default_rng(0).integers(0, 3, (20, 4))
    one_hot = np.eye(3)[states]
    expected = Potts(3).bias_from_counts(one_hot.sum(axis=0).T, 1.0)
    np.testing.assert_allclose(Potts(3).bias_from_sample(states.astype(np.uint8), 1.0), expected)
    np.testing.assert_allclose(Potts(3).bias_from_sample(one_hot, 1.0), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float64])
def test_states_are_values(dtype) -> None:
    states = np.array([[0, 2], [1, 0]], dtype)
    encoded = Potts(3).encode(states, "x")
    assert encoded.dtype == np.uint8
    np.testing.assert_array_equal(Potts(3).decode(encoded), states)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[1, 3]], r"values from 1 to 3, expected whole numbers from 0 to 2.*: states count from 0: x - 1"),
        ([[0, 3]], "alphabet"),
        ([[-1, 1]], "values from -1 to 1"),
        ([[0.5, 1]], "no values between"),
        ([[0.0, np.nan]], "NaN in x"),
        ([["A", "C"]], "number the letters"),
    ],
)
def test_what_is_not_a_state(values, said) -> None:
    with pytest.raises(InputError, match=said):
        Potts(3).encode(np.array(values), "x")


def test_units_are_equal_if_their_states_are() -> None:
    assert Potts(3) == Potts(3) != Potts(4)
    assert Potts(256).dtype == np.uint8
    assert Potts(257).dtype == np.uint16
    with pytest.raises(InputError, match="Potts units of 0 states"):
        Potts(0)
