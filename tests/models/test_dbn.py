"""Deep belief networks: recognition and generation against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.models.dbn import DBN
from meltpoint.models.log_f import log_bernoulli
from oracle.concentration import bernstein
from oracle.directed import generative, recognition
from oracle.driving import models
from oracle.tables import all_states, code


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 999))
@settings(max_examples=min(25, settings().max_examples), deadline=None)
def test_recognised_rates_of_one_layer_are_those_of_recognition(lower, upper, seed) -> None:
    model = models.dbn(seed, [lower, upper, 2])
    layer = model.directed[0]
    expected = recognition(layer.weights, layer.recognition_bias) @ all_states(upper)
    np.testing.assert_allclose(model.recognise(all_states(lower)), expected, rtol=1e-9)


def test_rates_pass_from_layer_to_layer() -> None:
    model = models.dbn(1, [3, 4, 2, 2])
    first, second = model.directed
    lower = 1 / (1 + np.exp(-(all_states(3) @ first.weights + first.recognition_bias)))
    upper = 1 / (1 + np.exp(-(lower @ second.weights + second.recognition_bias)))
    np.testing.assert_allclose(model.recognise(all_states(3)), upper, rtol=1e-12)


@pytest.mark.parametrize("sizes", [[3, 2, 2], [2, 3, 2, 1]])
def test_recognition_draws_from_q_and_says_how_much_it_weighs(sizes) -> None:
    model, n = models.dbn(2, sizes), 20_000
    x = np.ones((1, 1, sizes[0]), np.uint8)
    state, log_weights = model.recognise_sample(np.repeat(x, n, axis=1), [np.random.default_rng(0)])
    assert state.shape == (1, n, sizes[-2])
    q = recognition(model.directed[0].weights, model.directed[0].recognition_bias)[-1]
    for layer in model.directed[1:]:
        q = q @ recognition(layer.weights, layer.recognition_bias)
    frequency = np.bincount(code(state[0]), minlength=q.size) / n
    assert all(
        abs(f - p) < bernstein(n, p * (1 - p), 1, 1e-6 / q.size) for f, p in zip(frequency, q, strict=True)
    )
    if len(model.directed) == 1:
        layer = model.directed[0]
        expected = log_bernoulli(x[0], state[0] @ layer.weights.T + layer.visible_bias)
        expected -= log_bernoulli(state[0], x[0] @ layer.weights + layer.recognition_bias)
        np.testing.assert_allclose(log_weights[0], expected, atol=1e-6)


@pytest.mark.parametrize("sizes", [[3, 2, 2], [2, 3, 2, 1]])
def test_generation_draws_through_the_directed_layers(sizes) -> None:
    model, n = models.dbn(3, sizes), 20_000
    upper = np.zeros((n, sizes[-2]), np.uint8)
    upper[:, 0] = 1
    p = np.eye(2 ** sizes[-2])[code(upper[0])]
    for layer in reversed(model.directed):
        p = p @ generative(layer.weights, layer.visible_bias)
    drawn = model.generate(upper, np.random.default_rng(0))
    assert drawn.dtype == np.uint8
    frequency = np.bincount(code(drawn), minlength=p.size) / n
    assert all(
        abs(f - q) < bernstein(n, q * (1 - q), 1, 1e-6 / p.size) for f, q in zip(frequency, p, strict=True)
    )


def test_without_directed_layers_nothing_is_drawn() -> None:
    model = DBN([], models.rbm(4, 3, 2))
    x = all_states(3)
    state, log_weights = model.recognise_sample(x[:, np.newaxis], [])
    np.testing.assert_array_equal(state[:, 0], x)
    assert (log_weights == 0).all()
    np.testing.assert_array_equal(model.recognise(x), x)
    np.testing.assert_array_equal(model.generate(x, np.random.default_rng(0)), x)
