"""The honesty benchmark: its exact values are exact, its seeds repeat, and its counting is right."""

import importlib
import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

import meltpoint as mp

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
QUICK = [
    "weak",
    "strong",
    "mixture",
    "far-unit",
    "far-two",
    "far-ones",
    "far-many",
    "patterns",
    "dbm",
    "dbn",
    "dbn-bad",
]


@pytest.fixture
def bench(monkeypatch):
    """Imports a module of the benchmarks, which are programs beside each other and not a package."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


@pytest.mark.parametrize("family", QUICK)
def test_a_seed_gives_the_same_model_and_data(bench, family):
    make = bench("honesty_models").FAMILIES[family]
    once, again, other = make(1), make(1), make(2)
    assert once.log_z == again.log_z
    assert (once.test == again.test).all()
    assert once.log_z != other.log_z
    assert math.isfinite(once.mean_log_prob)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["strong", "dbm", "dbn", "dbn-bad"])
def test_exact_values_are_those_of_a_distribution(bench, family):
    """All visible states: their probabilities, by brute force over all hidden units, are those of the subject."""
    models = bench("honesty_models")
    subject = next(s for s in map(models.FAMILIES[family], range(50)) if sum(_sizes(s.model)) <= 20)
    sizes = _sizes(subject.model)
    states = np.array(list(itertools.product([0, 1], repeat=sum(sizes))), np.uint8)
    visible, joint = states[:, : sizes[0]], _log_joint(subject.model, states, sizes)
    log_z = logsumexp(joint)
    for row, log_f in list(zip(subject.test, subject.log_f, strict=True))[:5]:
        expected = logsumexp(joint[(visible == row).all(axis=1)]) - log_z
        assert log_f - subject.log_z == pytest.approx(expected, abs=1e-9)


def test_wrong_trusted_reports_are_counted(bench):
    honesty = bench("honesty")
    task = honesty.Task("weak", 0, "default", 10, None, 5.0, few=False)

    def outcome(low, high, trusted=True):
        return honesty.Outcome(task, trusted, "agree", -3.0, low, high)

    right, wrong, turned = outcome(-4.0, -2.0), outcome(-2.0, -1.0), outcome(-2.0, -4.0, trusted=False)
    assert [o.outside for o in (right, wrong, turned)] == [False, True, True]
    assert turned.is_reversed
    assert outcome(math.nan, -2.0).without_ends
    assert outcome(math.nan, -2.0).outside
    assert honesty.too_many([right] * 98 + [wrong] * 2, 0.01) == []
    assert honesty.too_many([right] * 90 + [wrong] * 10, 0.01) == ["weak"]
    assert honesty.too_many([right] * 99 + [turned], 0.01) == ["weak"]
    assert "10.0 %" in honesty.table([right] * 90 + [wrong] * 10)[1]


def test_a_model_goes_through_evaluate(bench):
    honesty = bench("honesty")
    outcome = honesty.run(honesty.Task("weak", 0, "default", 100, None, 5.0, few=False))
    assert not outcome.outside
    assert outcome.held == {"log Z >": True, "at most": True, "log p_N >": True, "CSL": True}
    refused = replace(outcome, trusted=False, held=outcome.held | {"at most": False})
    assert [refused.is_too_cautious, outcome.is_too_cautious] == [True, False]
    assert any("at most    broken 1 of 2" in line for line in honesty.table([outcome, refused]))


def test_log_z_and_comparisons_are_checked_too(bench):
    honesty = bench("honesty")
    found = honesty.run(honesty.Task("weak", 0, "default", 100, None, 5.0, few=False, call="log_z"))
    assert found.held == {"log Z >": True, "log Z <": True}
    assert not found.outside
    order = honesty.run(honesty.Task("weak", 0, "default", 100, None, 5.0, few=False, call="compare"))
    assert not order.outside
    assert abs(order.exact) <= 1.5
    spins = honesty.Task("far-ising", 0, "default", 100, None, 5.0, few=False, call="compare")
    assert honesty.run(spins) is None


@pytest.mark.parametrize("family", ["unequal", "first-order", "far-gaussian", "modular-dbm", "far-ising"])
def test_sums_in_closed_form_are_those_of_the_library(bench, family):
    subject = bench("honesty_far").FAMILIES[family](0)
    assert mp.exact_log_z(subject.model) == pytest.approx(subject.log_z, abs=1e-8)
    assert subject.model.log_f(subject.test) == pytest.approx(subject.log_f, abs=1e-8)


def _sizes(model):
    return model.layer_sizes


def _log_joint(model, states, sizes):
    layers = np.split(states.astype(float), np.cumsum(sizes)[:-1], axis=1)
    if hasattr(model, "directed"):
        (layer,) = model.directed
        inputs = layers[1] @ layer.weights.T + layer.visible_bias
        given = (layers[0] * inputs - np.logaddexp(0, inputs)).sum(axis=1)
        return given + _energy(
            [model.top.weights], [model.top.visible_bias, model.top.hidden_bias], layers[1:]
        )
    if hasattr(model, "biases"):
        return _energy(model.weights, model.biases, layers)
    return _energy([model.weights], [model.visible_bias, model.hidden_bias], layers)


def _energy(weights, biases, layers):
    own = sum(layer @ bias for layer, bias in zip(layers, biases, strict=True))
    return own + sum(((a @ w) * b).sum(axis=1) for a, w, b in zip(layers, weights, layers[1:], strict=False))
