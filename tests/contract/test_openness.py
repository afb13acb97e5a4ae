"""What is open stays open: a layer, a model, a transition, a backend and an estimator, each in one place.

Each example is what one new file would hold, and one line of a registry.
"""

from unittest import mock

import numpy as np
import pytest

import meltpoint as mp
from contract.own_models import Energy, SingleSite
from meltpoint import layers
from meltpoint.backends import registry
from meltpoint.backends.reference import ReferencePath
from oracle.tables import all_states

QUICK = {"steps": 100, "schedule": "linear", "exact": False, "progress": False}


class Ternary(layers.Unit):
    """A layer: units that are -1, 0 or +1, with log weight t·x - ½ g·x² (the sites of a Blume-Capel model)."""

    name, values_in_words = "ternary", "-1, 0 and +1"
    n_states, input_shape = 3, (2,)

    def encode(self, values, name):
        return (np.asarray(values) + 1).astype(np.uint8)

    def decode(self, states):
        return states.astype(np.int8) - 1

    def _log_weights(self, inputs):
        x = np.arange(-1, 2)
        return inputs[..., :1] * x - inputs[..., 1:] * x**2 / 2

    def log_partition(self, inputs):
        return np.logaddexp.reduce(self._log_weights(inputs), axis=-1)

    def mean(self, inputs):
        weights = np.exp(self._log_weights(inputs) - self.log_partition(inputs)[..., np.newaxis])
        return weights @ np.arange(-1, 2)

    def draw(self, inputs, uniforms):
        weights = np.exp(self._log_weights(inputs) - self.log_partition(inputs)[..., np.newaxis])
        return (
            (np.cumsum(weights, axis=-1)[..., :2] < uniforms[..., np.newaxis]).sum(axis=-1).astype(np.uint8)
        )

    def _statistics(self, states):
        x = self.decode(states).astype(float)
        return np.stack([x, -(x**2) / 2], axis=-1)

    def log_weight(self, states, inputs):
        return (self._statistics(states) * inputs).sum(axis=-1)

    def bias_from_sample(self, sample, smoothing):
        share = (np.mean(np.abs(self.decode(sample)), axis=0) + smoothing) / (1 + 2 * smoothing)
        return np.stack([np.zeros(share.shape), -2 * np.log(share / (1 - share) / 2)], axis=-1)


def test_a_layer(tmp_path):
    """Visible and hidden: its RBM is evaluated, saved and loaded, and log Z is that of enumeration."""
    rng = np.random.default_rng(0)
    weights, visible, hidden = (
        rng.normal(0, 0.7, (3, 2)),
        rng.normal(0, 0.5, (3, 2)),
        rng.normal(0, 0.5, (2, 2)),
    )
    states = np.array(np.meshgrid(*[[-1, 0, 1]] * 5)).reshape(5, -1).T
    v, h = states[:, :3], states[:, 3:]
    log_f = v @ visible[:, 0] - v**2 @ visible[:, 1] / 2 + h @ hidden[:, 0] - h**2 @ hidden[:, 1] / 2
    log_f += np.einsum("si,ij,sj->s", v, weights, h)
    log_z = np.logaddexp.reduce(log_f)
    with mock.patch.dict(layers.LAYERS, ternary=Ternary):  # the line of the registry
        model = mp.RBM(weights, visible, hidden, visible="ternary", hidden="ternary")
        assert mp.exact_log_z(model) == pytest.approx(log_z, abs=1e-12)
        first = np.logaddexp.reduce(log_f[(v == v[0]).all(axis=1)])
        assert model.log_f(v[:1])[0] == pytest.approx(first, abs=1e-12)
        x = mp.sample(model, 40, steps=50, moves=5)
        assert mp.sample(model, 5, exact=True).shape == (5, 3)  # by elimination
        report = mp.evaluate(model, x, x, **QUICK)
        low, high = report.between
        assert low <= model.log_f(x).mean() - log_z <= high
        mp.save(model, tmp_path / "model.npz")
        np.testing.assert_array_equal(mp.load(tmp_path / "model.npz").log_f(x), model.log_f(x))
        mixed = mp.RBM(weights, visible, hidden[:, 0], visible="ternary")
        assert abs(mp.ais_log_z(mixed, steps=200, chains=200).value - mp.exact_log_z(mixed)) < 0.2


def test_a_model():
    """A model needs no registry."""
    assert mp.ais_log_z(Energy(3), steps=50, chains=50).ess > 25


class HeatBath:
    """A transition: one site of each chain after the other is drawn from its conditional distribution."""

    def reversed(self):
        return self

    def move(self, path, s, state, draws, clamped=None):
        state = state.copy()
        for i in (*range(state.shape[1]), *reversed(range(state.shape[1]))):  # there and back: reversible
            log_f = []
            for value in (0, 1):
                state[:, i] = value
                log_f.append(path.log_f(s, state))
            state[:, i] = draws.uniforms(1)[:, 0] <= 1 / (1 + np.exp(log_f[0] - log_f[1]))
        return state


def test_a_transition():
    model = Energy(4)
    with mock.patch("contract.own_models.SingleSite", HeatBath):
        x, exact = all_states(4), mp.exact_log_z(model)
        forward = mp.ais_log_z(model, steps=50, chains=300)
        assert abs(forward.value - exact) < 6 * forward.stderr
        found = mp.raise_log_prob(model, x, steps=50, chains=100, forward=forward)
        assert np.abs(found.values - (model.log_f(x) - exact)).max() < 0.2
    assert isinstance(model.path(mp.uniform()).transition, SingleSite)


class CountingBackend:
    """A backend: it runs what it supports, here as the reference does, and says that it was asked."""

    name = "counting"

    def __init__(self):
        self.prepared = 0

    def supports(self, path):
        return path.n_state == 5

    def prepare(self, path, precision):
        self.prepared += 1
        return ReferencePath(path)


def test_a_backend():
    own = CountingBackend()
    with mock.patch.object(registry, "BACKENDS", (own, *registry.BACKENDS)):  # the line of the registry
        found = [mp.ais_log_z(Energy(n), steps=20, chains=20) for n in (4, 5)]
    assert own.prepared == 1
    assert found[1].log_weights.shape == (20,)


def reverse_log_z(model, states, *, steps=200, seed=0):
    """An estimator: log Z from above, by chains that melt exact samples back to the base."""
    path = model.path(mp.uniform())
    segment = mp.annealing.Segment(np.linspace(1, 0, steps + 1), reversed_sweeps=True)
    draws = mp.annealing.GeneratorDraws([np.random.default_rng(seed)], len(states))
    _, log_weights = mp.annealing.anneal_reference(path, segment, states, draws)
    return path.log_z_base + path.log_constant + np.log(len(states)) - np.logaddexp.reduce(log_weights)


def test_an_estimator():
    model = Energy(4)
    x = all_states(4)
    p = np.exp(model.log_f(x) - mp.exact_log_z(model))
    samples = x[np.random.default_rng(1).choice(16, 500, p=p)]
    assert reverse_log_z(model, samples) == pytest.approx(mp.exact_log_z(model), abs=0.05)
