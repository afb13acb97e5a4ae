"""RBMs with Gaussian visible units against sums over hidden states and numerical integration."""

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

import meltpoint as mp
from contract.cases import saved_and_evaluated
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.registry import prepare_path
from meltpoint.backends.tiles import anneal
from meltpoint.kernels.streams import Streams
from meltpoint.layers import GAUSSIAN, Gaussian
from meltpoint.randomness import Purpose

LOUD = 1e-3
GRID = np.linspace(-25, 25, 2001)  # where the trapezoidal rule is exact to all digits for smooth densities
STEP = GRID[1] - GRID[0]
BETAS = np.array([0.0, 0.3, 0.8, 1.0])
hiddens = pytest.mark.parametrize("hidden", ["bernoulli", "spin"])


def random_rbm(hidden, visible=2, n_hidden=2, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return mp.RBM(
        rng.normal(0, scale, (visible, n_hidden)),
        rng.normal(0, scale, visible),
        rng.normal(0, scale, n_hidden),
        visible="gaussian",
        hidden=hidden,
        visible_scale=rng.uniform(0.6, 1.6, visible),
    )


def joint(model, v):
    """log f (example, hidden state) by the definition."""
    values = (0, 1) if model.hidden.name == "bernoulli" else (-1, 1)
    h = np.array(list(itertools.product(values, repeat=model.n_hidden)), float)
    square = -np.square((v - model.visible_bias) / model.visible_scale).sum(axis=1) / 2
    return square[:, np.newaxis] + (v / model.visible_scale) @ model.weights @ h.T + h @ model.hidden_bias


def kernel(path, beta):
    """Density (from, to) of a sweep at beta of one visible unit, on the grid, from the library's inputs."""
    hidden = np.array(list(itertools.product((0, 1), repeat=path.target.n_odd)))
    t = path.inputs(beta, 1, path.target.with_summed_out(GRID[:, np.newaxis]))
    log_prob = (t[:, np.newaxis] * hidden).sum(axis=2) - np.logaddexp(0, t).sum(axis=1, keepdims=True)
    given_h = path.inputs(beta, 0, np.concatenate([np.zeros((len(hidden), 1)), hidden], axis=1))[:, 0]
    density = norm.pdf(GRID, (given_h[:, 0] / given_h[:, 1])[:, None], given_h[:, 1:] ** -0.5)
    return np.exp(log_prob) @ density


def moments_of_ais(path):
    """Mean and mean square of Z_0 exp(log weight) of AIS, by integration over the visible unit."""
    scale = np.exp(path.log_z_base + path.target.log_constant)
    found = []
    for power in (1, 2):
        row = np.zeros(len(GRID))
        row[0] = 1 / STEP
        for beta, following in itertools.pairwise(BETAS):
            row = STEP * row @ kernel(path, beta)
            change = path.log_f(following, GRID[:, np.newaxis]) - path.log_f(beta, GRID[:, np.newaxis])
            row = row * np.exp(power * change)
        found.append(STEP * row.sum() * scale**power)
    return found


def base_of(model):
    rng = np.random.default_rng(5)
    n = model.n_visible
    visible = GAUSSIAN.bias_from_moments(rng.normal(0, 1, n), rng.uniform(0.5, 2, n))
    return mp.Base("every layer", (visible, rng.normal(0, 1, model.n_hidden)))


@given(t=st.floats(-5, 5), precision=st.floats(0.1, 10), u=st.floats(1e-6, 1 - 1e-6))
def test_a_unit_is_a_normal_distribution(t, precision, u) -> None:
    inputs = np.array([[t, precision]])
    mean, deviation = t / precision, precision**-0.5
    assert GAUSSIAN.mean(inputs)[0] == pytest.approx(mean)
    drawn = GAUSSIAN.draw(inputs, np.array([u]))[0]
    assert ndtr((drawn - mean) / deviation) == pytest.approx(u, rel=1e-6)
    v = np.array([1.3])
    log_density = GAUSSIAN.log_weight(v, inputs) - GAUSSIAN.log_partition(inputs)
    np.testing.assert_allclose(log_density, norm.logpdf(v, mean, deviation), rtol=1e-9, atol=1e-9)


def test_a_base_has_the_moments_of_a_sample() -> None:
    sample = np.random.default_rng(0).normal([1.0, -2.0, 0.0], [0.5, 2.0, 0.0], (4000, 3))
    inputs = GAUSSIAN.bias_from_sample(sample, 1.0)
    np.testing.assert_allclose(inputs[:2, 0] / inputs[:2, 1], sample.mean(axis=0)[:2], rtol=1e-9)
    np.testing.assert_allclose(1 / inputs[:2, 1], sample.var(axis=0)[:2], rtol=2e-3)
    assert np.isfinite(inputs).all()  # also of the unit that never changes


@hiddens
def test_log_f_is_the_sum_over_hidden_states(hidden) -> None:
    model = random_rbm(hidden, 4, 3)
    v = np.random.default_rng(1).normal(0, 2, (10, 4))
    np.testing.assert_allclose(model.log_f(v), logsumexp(joint(model, v), axis=1), rtol=1e-12)


@hiddens
def test_log_z_is_the_integral(hidden) -> None:
    model = random_rbm(hidden)
    axis = np.linspace(-15, 15, 301)
    v = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    z = np.exp(joint(model, v)).sum() * (axis[1] - axis[0]) ** 2
    assert mp.exact_log_z(model) == pytest.approx(np.log(z), abs=1e-11)


@pytest.mark.slow
@hiddens
def test_ais_and_raise_by_integration(hidden) -> None:
    model = random_rbm(hidden, visible=1, seed=3)
    base = base_of(model)
    path = model.path(base)
    z = np.exp(mp.exact_log_z(model))
    assert moments_of_ais(path)[0] == pytest.approx(z, rel=1e-9)
    for beta in BETAS:
        p = np.exp(path.log_f(beta, GRID[:, np.newaxis]))
        p /= STEP * p.sum()
        np.testing.assert_allclose(STEP * p @ kernel(path, beta), p, rtol=1e-7, atol=1e-12)
    v = np.array([[-1.0], [0.5], [2.5]])
    p_ann = np.exp(path.log_prob_base(GRID[:, np.newaxis]))
    for beta in BETAS[1:]:
        p_ann = STEP * p_ann @ kernel(path, beta)
    start = model.raise_start(path, GRID[:, np.newaxis], BETAS, 0, np.zeros((len(GRID), 2), np.int64))
    (melt,) = start.segments
    column = np.ones(len(GRID))  # backwards: what is to come from each state
    for beta, following in reversed(list(itertools.pairwise(melt.betas))):
        change = path.log_f(following, GRID[:, np.newaxis]) - path.log_f(beta, GRID[:, np.newaxis])
        column = STEP * kernel(path, beta) @ (np.exp(change) * column)
    found = np.exp(start.log_weights) * column
    near = np.abs(GRID[:, np.newaxis] - v[:, 0]).argmin(axis=0)
    np.testing.assert_allclose(found[near], p_ann[near], rtol=1e-9)


def test_a_constant_left_out_of_the_partition_is_rejected() -> None:
    model = random_rbm("bernoulli", visible=1, seed=3)
    z = np.exp(mp.exact_log_z(model))
    whole = Gaussian.log_partition
    with mock.patch.object(Gaussian, "log_partition", lambda self, t: whole(self, t) - np.log(2 * np.pi) / 2):
        assert abs(moments_of_ais(model.path(base_of(model)))[0] / z - 1) > LOUD


def test_chains_have_the_weights_of_the_integral() -> None:
    """Normal approximation of the mean of 20,000 weights, 6 standard errors by integration: a false alarm in 5e8."""
    model = random_rbm("spin", visible=1, seed=3)
    base, n = base_of(model), 20_000
    mean, square = moments_of_ais(model.path(base))
    found = np.exp(mp.ais_log_z(model, base=base, steps=BETAS, chains=n).log_weights).mean()
    assert abs(found - mean) < 6 * np.sqrt((square - mean**2) / n)


def test_results_do_not_depend_on_tiles_or_threads() -> None:
    model = random_rbm("bernoulli", 37, 21, scale=0.3)
    prepared = prepare_path(model.path(base_of(model)))
    start = np.random.default_rng(0).normal(0, 1, (40, 37))
    betas = np.linspace(0, 1, 8)
    clamped = np.arange(37) < 5
    segments = [Segment(betas, clamped), Segment(betas[::-1], reversed_sweeps=True)]
    streams = Streams(0, Purpose.AIS, np.arange(40))
    one, other = (
        anneal(prepared, segments, start, streams, tile=tile) for threads, tile in ((1, 40), (2, 3))
    )
    np.testing.assert_array_equal(one.state, other.state)
    np.testing.assert_array_equal(one.cumulative_log_weights, other.cumulative_log_weights)
    held = anneal(prepared, segments[:1], start, streams).state
    np.testing.assert_array_equal(held[:, clamped], start[:, clamped])


@pytest.mark.slow
@hiddens
def test_evaluation_files_and_conditionals(hidden, tmp_path) -> None:
    model = random_rbm(hidden, 4, 3)
    _, report = saved_and_evaluated(model, tmp_path)
    assert repr(model) == f"RBM 4-3 (gaussian, {hidden})"
    assert "relative to Lebesgue measure" in " ".join(str(report).split())
    assert "Lebesgue" in report.to_dict()["unit"]
    means = model.visible_given_hidden(model.hidden.decode(np.zeros((1, 3), np.uint8)))
    assert means.shape == (1, 4)


def test_likelihoods_are_densities() -> None:
    """Ten times the numbers, a tenth of the density in each direction."""
    model = random_rbm("bernoulli", 3, 2)
    wide = mp.RBM(
        model.weights,
        10 * model.visible_bias,
        model.hidden_bias,
        visible="gaussian",
        visible_scale=10 * model.visible_scale,
    )
    v = np.random.default_rng(0).normal(0, 1, (5, 3))
    narrow = model.log_f(v) - mp.exact_log_z(model)
    np.testing.assert_allclose(wide.log_f(10 * v) - mp.exact_log_z(wide), narrow - 3 * np.log(10))


def test_what_is_not_a_gaussian_rbm() -> None:
    weights, bias = np.zeros((2, 3)), np.zeros(2)
    with pytest.raises(mp.InputError, match="positive standard deviations"):
        mp.RBM(weights, bias, np.zeros(3), visible="gaussian", visible_scale=[1.0, 0.0])
    with pytest.raises(mp.InputError, match="visible_scale of length 3"):
        mp.RBM(weights, bias, np.zeros(3), visible="gaussian", visible_scale=[1.0, 1.0, 1.0])
    model = mp.RBM(weights, bias, np.zeros(3), visible="gaussian")
    with pytest.raises(mp.InputError, match="NaN in x"):
        model.log_f([[0.0, np.nan]])
    with pytest.raises(mp.InputError, match="infinite values in x"):
        model.log_f([[0.0, np.inf]])
