"""The convention check: pseudo-likelihoods against enumeration, and mistakes that it names."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.estimators.conventions import ConventionCheck, conditional_log_probs
from meltpoint.models.readings import CCM, GAP_FIRST, GAP_LAST
from meltpoint.records import from_plain
from meltpoint.results.text import render_text

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(0)


def symmetric(n):
    upper = np.triu(RNG.normal(0, 0.6, (n, n)), 1)
    return upper + upper.T


MODELS = {
    "RBM": mp.RBM(RNG.normal(size=(4, 3)), RNG.normal(size=4), RNG.normal(size=3)),
    "spin RBM": mp.RBM(
        RNG.normal(size=(4, 3)), RNG.normal(size=4), RNG.normal(size=3), visible="spin", hidden="spin"
    ),
    "Potts RBM": mp.RBM(
        RNG.normal(size=(3, 4, 2)), RNG.normal(size=(3, 4)), RNG.normal(size=2), visible="potts"
    ),
    "Ising": mp.Ising(symmetric(5), RNG.normal(size=5)),
    "Ising of bits": mp.Ising(symmetric(5), RNG.normal(size=5), units="bernoulli"),
    "lattice": mp.Ising(np.diag([0.5, -1, 0.7], 1) + np.diag([0.5, -1, 0.7], -1), RNG.normal(size=4)),
    "Potts": mp.Potts(
        {(0, 1): RNG.normal(size=(3, 3)), (1, 2): RNG.normal(size=(3, 3))}, RNG.normal(size=(4, 3))
    ),
}


def all_states(model):
    return np.array(list(np.ndindex((model.units[0].n_states,) * model.n_visible)), np.uint8)


@pytest.mark.parametrize("name", MODELS)
def test_conditional_probabilities_by_enumeration(name):
    model = MODELS[name]
    states, q, n = all_states(model), model.units[0].n_states, model.n_visible
    f = np.exp(model.log_f(model.decode(states))).reshape((q,) * n)
    log_probs = sum(np.log(f / f.sum(axis=i, keepdims=True)) for i in range(n))
    found = conditional_log_probs(model, states, np.arange(n)).sum(axis=1)
    np.testing.assert_allclose(found, log_probs.ravel(), rtol=0, atol=1e-12)


def exact_samples(model, n=3000):
    states = all_states(model)
    log_f = model.log_f(model.decode(states))
    return states[RNG.choice(len(states), n, p=np.exp(log_f - np.logaddexp.reduce(log_f)))]


@pytest.mark.parametrize("name", MODELS)
def test_samples_of_the_model_itself_raise_no_alarm(name):
    check = mp.check_conventions(MODELS[name], MODELS[name].decode(exact_samples(MODELS[name])))
    assert check is not None
    assert check.suspected is None
    assert "no other reading" in str(check)


def test_graphs_with_mistakes():
    for name in ("Ising", "Ising of bits"):
        model = MODELS[name]
        x = model.decode(exact_samples(model))
        units = model.unit.name
        j, h = model.couplings.toarray(), model.fields
        other = "spin" if units == "bernoulli" else "bernoulli"
        assert mp.check_conventions(mp.Ising(-j, -h, units), x).suspected == "sign"
        assert mp.check_conventions(mp.Ising(-j, h, units), x).suspected == "sign of the couplings"
        assert mp.check_conventions(mp.Ising(j, -h, units), x).suspected == "sign of the fields"
        model = mp.Ising(j, 0 * h, units)
        bits = exact_samples(model)
        converted = 2 * bits.astype(int) - 1 if other == "spin" else bits
        assert mp.check_conventions(mp.Ising(j, 0 * h, other), converted).suspected == units


@pytest.mark.parametrize("name", ["Potts", "Potts RBM"])
def test_states_numbered_otherwise(name):
    model = MODELS[name]
    x, q = exact_samples(model), model.units[0].n_states
    assert mp.check_conventions(model, (x + 1) % q).suspected == "gap last"
    assert mp.check_conventions(model, (x + q - 1) % q).suspected == "gap first"


ORDERS = [(GAP_FIRST, CCM), (CCM, GAP_FIRST), (f"-{CCM[:-1]}", GAP_LAST), (GAP_FIRST[1:], CCM[:-1])]


@pytest.mark.parametrize(("data", "own"), ORDERS)
def test_the_order_of_another_program(data, own):
    rng, q = np.random.default_rng(3), len(own)
    fields = rng.normal(0, 2, (6, q))
    model = mp.Potts({(0, 1): rng.normal(size=(q, q))}, fields)
    p = np.exp(fields) / np.exp(fields).sum(axis=1, keepdims=True)
    x = np.stack([rng.choice(q, 400, p=row) for row in p], axis=1)
    wrong = np.array([data.index(letter) for letter in own])[x]
    check = mp.check_conventions(model, wrong)
    assert check.suspected == f"{data} as {own}"
    assert f"alphabet='{own}'" in check.remedy

    report = mp.evaluate(model, wrong, wrong, steps=20, examples=10)
    assert not report.trusted
    for headline in (report.conclusion, repr(report), report.to_html().split("<nav")[0]):
        assert "gree:" not in headline  # whatever the verdict is
        assert "agree)" not in headline
    assert "Is the model read as it was meant?" in str(report)


def test_models_without_other_readings():
    deep = mp.DBM([np.ones((3, 2)), np.ones((2, 2))], [np.zeros(3), np.zeros(2), np.zeros(2)])
    assert mp.check_conventions(deep, [[0, 1, 1]]) is None
    assert mp.check_conventions(mp.Potts({}, [[0.0, 1], [0, 1, 2]]), [[0, 1]]) is None


@pytest.fixture(scope="module")
def digits():
    """A square RBM of digits, trained well enough to be recognised."""
    train = mp.datasets.load("digits").train.reshape(-1, 8, 8)[:, 2:6, 1:7].reshape(-1, 24)
    return mp.train_rbm(train, hidden=24, epochs=150), train


@pytest.mark.slow
def test_the_report_says_it(digits):
    model, train = digits
    wrong = mp.RBM(model.weights.T, model.visible_bias, model.hidden_bias)
    small = {"steps": 20, "chains": 1, "examples": 5, "evidence": False}
    report = mp.evaluate(wrong, train[:200], train, **small)
    assert report.conventions.suspected == "transposed"
    text = " ".join(render_text(report.document()).split())
    assert (
        "Is the model read as it was meant? The data fit better if the weights are (hidden, visible)" in text
    )
    assert "transpose the weights" in text
    said = json.loads(json.dumps(report.to_dict(), allow_nan=False))["conventions"]
    assert said["suspected"] == "transposed"
    assert from_plain(ConventionCheck, said) == report.conventions
    right = mp.evaluate(model, train[:200], train, **small)
    assert right.conventions.suspected is None
    assert "read as it was meant" not in str(right)


def test_it_never_changes_the_model(digits):
    model, train = digits
    wrong = mp.RBM(-model.weights, -model.visible_bias, -model.hidden_bias)
    before = wrong.log_f(train[:10])
    assert mp.check_conventions(wrong, train).suspected == "sign"
    np.testing.assert_array_equal(wrong.log_f(train[:10]), before)


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("conventions_benchmark", ROOT / "benchmarks/conventions.py")
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_mistake_is_named(digits, bench):
    model, train = digits
    for mistake in bench.MISTAKES:
        as_spins = mistake == "spin"
        right, data = (bench.spins_of(model), 2 * train.astype(np.int8) - 1) if as_spins else (model, train)
        assert mp.check_conventions(right, data).suspected is None
        assert mp.check_conventions(*bench.with_mistake(right, data, mistake)).suspected == mistake


def test_it_takes_less_than_a_second():
    import time

    model = mp.RBM(RNG.normal(0, 0.05, (784, 500)), RNG.normal(size=784), RNG.normal(size=500))
    x = RNG.integers(0, 2, (10_000, 784), np.uint8)
    begun = time.process_time()
    mp.check_conventions(model, x)
    # Processor time: 0.5 s on an idle core, most of it for the data's checks.
    assert time.process_time() - begun < 2.0
