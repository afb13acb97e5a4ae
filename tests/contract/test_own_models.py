"""Models that are not the library's go through everything, and the answers are those of enumeration."""

from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context

import numpy as np
import pytest

import meltpoint as mp
from contract.own_models import Energy, Reals, ThreeBlocks
from oracle.tables import all_states

MODELS = [Energy(4), ThreeBlocks()]
pytestmark = pytest.mark.slow  # the reference backend runs them
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)
QUICK = {"steps": 50, "schedule": "linear", "exact": False, "progress": False}


def log_prob(model):
    """Exact log-probabilities (visible state,)."""
    log_f = model.log_f(all_states(model.n_visible))
    return log_f - np.logaddexp.reduce(log_f)


def data(model, n=40):
    """Exact samples."""
    rng = np.random.default_rng(5)
    chosen = rng.choice(2**model.n_visible, n, p=np.exp(log_prob(model)))
    return all_states(model.n_visible)[chosen], float(log_prob(model)[chosen].mean())


def truth(model):
    return float(np.logaddexp.reduce(model.log_f(all_states(model.n_visible))))


@every_model
def test_log_z(model):
    assert mp.exact_log_z(model) == pytest.approx(truth(model), abs=1e-12)
    low, high = mp.log_z(model, steps=50, exact=False).between
    assert low <= truth(model) <= high
    forward = mp.ais_log_z(model, base="model", steps=100, chains=500)
    assert abs(forward.value - truth(model)) < 6 * forward.stderr


@every_model
def test_raise_and_samples(model):
    x, exact = all_states(model.n_visible), log_prob(model)
    forward = mp.ais_log_z(model, steps=100, chains=200)
    found = mp.raise_log_prob(model, x, steps=100, chains=50, forward=forward)
    assert (np.abs(found.values - exact) < 6 * np.hypot(found.stderrs, forward.stderr) + 0.01).all()
    drawn = mp.sample(model, 2000, steps=50, moves=10)
    numbers = drawn @ (1 << np.arange(model.n_visible))
    order = x @ (1 << np.arange(model.n_visible))
    rates = np.bincount(numbers, minlength=len(x))[order] / len(drawn)
    p = np.exp(exact)
    assert (np.abs(rates - p) < 5.5 * np.sqrt(p / len(drawn)) + 0.001).all()


@every_model
def test_reports(model, tmp_path):
    x, exact = data(model)
    report = mp.evaluate(model, x, x, **QUICK)
    low, high = report.between
    assert low - 1e-9 <= exact <= high + 1e-9
    report.save(tmp_path / "report.html")
    assert repr(model) in (tmp_path / "report.html").read_text(encoding="utf-8")
    again = mp.evaluate(model, x, x, threads=1, **QUICK)
    np.testing.assert_array_equal(again.per_example.log_weights, report.per_example.log_weights)
    found = mp.evaluate(model, x, x, steps=20, evidence=False, progress=False)  # a schedule of a pilot too
    assert found.exact.value == pytest.approx(exact)


@every_model
def test_comparison_and_trace(model):
    x, exact = data(model)
    compared = mp.compare({"a": model, "b": model}, x, x, **QUICK)
    (point,) = mp.trace({1: model}, x, x, **QUICK).points
    for low, high in (point.between, compared.reports["b"].between):
        assert low - 1e-9 <= exact <= high + 1e-9


class _StopAfter:
    """Progress that presses Ctrl-C once the estimates are under way."""

    def __init__(self):
        self.pressed = False

    def __call__(self, task, done, total):
        if not self.pressed and task == "AIS and RAISE" and done > total / 3:
            self.pressed = True
            raise KeyboardInterrupt


@every_model
def test_a_run_folder_goes_on_where_it_was_interrupted(model, tmp_path):
    x, _ = data(model)
    options = {**QUICK, "ais_chains": 300, "steps": 100}
    whole = mp.evaluate(model, x, x, **options)
    press = _StopAfter()
    with suppress(KeyboardInterrupt):  # if nothing was known by then
        assert mp.evaluate(model, x, x, run=tmp_path / "run", **{**options, "progress": press}).interrupted
    assert press.pressed
    second = mp.evaluate(model, x, x, run=tmp_path / "run", **options)
    assert not second.interrupted
    np.testing.assert_array_equal(second.per_example.log_weights, whole.per_example.log_weights)
    assert second.between == whole.between
    other = Energy(model.n_visible, seed=9)
    with pytest.raises(mp.InputError, match="model"):
        mp.evaluate(other, x, x, run=tmp_path / "run", **options)


def test_real_numbers():
    """Likelihoods are densities, which may be above 1, and the base "uniform" is standard normal."""
    model = Reals()
    exact = np.log(2 * np.pi) - np.log(np.linalg.det(model.precision)) / 2
    x = np.random.default_rng(4).multivariate_normal(np.zeros(2), np.linalg.inv(model.precision), 60)
    forward = mp.ais_log_z(model, steps=200, chains=300)
    assert abs(forward.value - exact) < 6 * forward.stderr
    report = mp.evaluate(model, x, x, steps=100, schedule="linear", progress=False)
    low, high = report.between
    assert low <= model.log_f(x).mean() - exact <= high
    assert "Lebesgue" in str(report)


def test_what_is_missing_is_said():
    class Half(mp.Model):
        support, n_visible = mp.layers.Bernoulli(), 2

        def log_f(self, x):
            return np.zeros(len(x))

    with pytest.raises(mp.InputError, match=r"without path\(base\).*own-model"):
        mp.ais_log_z(Half(), steps=5)
    with pytest.raises(mp.InputError, match=r"without fingerprint\(\)"):
        mp.evaluate(Half(), [[0, 1]], steps=5)
    with pytest.raises(TypeError, match="abstract"):
        type("None", (mp.Model,), {})()


@pytest.mark.slow
def test_processes():
    """Models without arrays travel as pickles of the executor: the same bits."""
    model = MODELS[0]
    x, _ = data(model)
    here = mp.evaluate(model, x, x, **QUICK)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = mp.evaluate(model, x, x, executor=pool, **QUICK)
    np.testing.assert_array_equal(there.per_example.log_weights, here.per_example.log_weights)
