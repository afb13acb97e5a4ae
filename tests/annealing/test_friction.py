"""Friction: what windows of log weights say of it, and the betas that follow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from meltpoint.annealing.schedule import COARSEST, Windows, measure_friction, spend_equally

frictions = arrays(np.float64, st.integers(1, 20), elements=st.just(0.0) | st.floats(1e-9, 1e6))


@given(frictions, st.integers(1, 200))
def test_schedules_increase_from_0_to_1_and_are_never_much_coarser_than_linear(friction, steps):
    edges = np.linspace(0, 1, friction.size + 1)
    betas = spend_equally(edges, friction, steps)
    assert betas.shape == (steps + 1,)
    assert (betas[0], betas[-1]) == (0, 1)
    assert (np.diff(betas) > 0).all()
    assert np.diff(betas).max() <= COARSEST / steps * (1 + 1e-9)


@given(frictions.filter(lambda f: f.sum() > 0), st.floats(1e-3, 1e3))
def test_only_the_shape_of_friction_matters(friction, scale):
    edges = np.linspace(0, 1, friction.size + 1)
    np.testing.assert_allclose(
        spend_equally(edges, scale * friction, 50), spend_equally(edges, friction, 50), atol=1e-9
    )


def test_steps_go_as_the_square_root_of_friction():
    betas = spend_equally(np.array([0, 0.5, 1]), np.array([1.0, 9.0]), 700)
    low = np.searchsorted(betas, 0.5) / 700
    assert low == pytest.approx(0.8 * 1 / 4 + 0.2 / 2, abs=0.002)  # a fifth of the steps is linear


@pytest.mark.parametrize("friction", [0.0, np.nan, np.inf])
def test_without_friction_the_schedule_is_linear(friction):
    betas = spend_equally(
        np.array([0, 0.5, 1]), np.array([friction, 1.0 if np.isnan(friction) else friction]), 4
    )
    np.testing.assert_array_equal(betas, np.linspace(0, 1, 5))


@given(st.integers(1, 40), st.integers(1, 40))
def test_windows_are_the_walk(steps, count):
    betas = np.linspace(0, 1, steps + 1) ** 2
    windows = Windows.of(betas, count)
    assert len(windows.parts) == min(steps, count)
    joined = np.concatenate([windows.parts[0], *(part[1:] for part in windows.parts[1:])])
    np.testing.assert_array_equal(joined, betas)
    assert [part[0] for part in windows.parts] == windows.edges[:-1].tolist()


def drift(rng, friction, windows, lag, chains=4000):
    """Log weights (chain, window) of an equilibrium walk with this friction: noise, and a loss of half of it."""
    speed = np.diff(windows.edges) ** 2 / np.diff(windows.cuts)
    variance = 2 * friction * speed
    return rng.normal(-lag * variance / 2, np.sqrt(variance), (chains, variance.size))


def test_friction_is_found_from_both_directions():
    windows = Windows.of(np.linspace(0, 1, 1001), 10)
    friction = np.geomspace(1, 1000, 10)
    rng = np.random.default_rng(0)
    up, down = (drift(rng, friction, windows, lag=1) for _ in range(2))
    # A variance from 2 x 4,000 chains is known to 1.6%; seven of those.
    np.testing.assert_allclose(measure_friction(windows, up, down), friction, rtol=0.11)
    np.testing.assert_allclose(measure_friction(windows, up, down, up), 1.5 * friction, rtol=0.11)


def test_where_the_directions_miss_each_other_their_loss_counts():
    """A jump: neither direction varies there, and both lose much."""
    windows = Windows.of(np.linspace(0, 1, 1001), 10)
    friction = np.ones(10)
    rng = np.random.default_rng(0)
    up, down = (drift(rng, friction, windows, lag=1) for _ in range(2))
    up[:, 4:6] -= 2.0
    found = measure_friction(windows, up, down)
    assert found[4:6].min() > 50 * found[[0, 1, 2, 3, 6, 7, 8, 9]].max()
    assert found[4] == pytest.approx(2.0 / 2 / (0.1**2 / 100), rel=0.1)
