"""Ctrl-C in every stage: a KeyboardInterrupt raised by the progress callback takes the way of the signal."""

import time

import numpy as np
import pytest
from numba import njit

import meltpoint as mp
from meltpoint.backends.numba import bipartite
from meltpoint.progress import COMPILING
from meltpoint.runs.batch import CHUNK_SIZE as TILE

CHAINS = 4
EXAMPLES = 12 * TILE // CHAINS  # twelve chunks for each side
RNG = np.random.default_rng(0)
MODEL = mp.RBM(RNG.normal(size=(40, 30)), RNG.normal(size=40), RNG.normal(size=30))
TEST = RNG.integers(0, 2, (EXAMPLES, 40))
BASE = mp.data_rates(TEST)


def evaluate(model=MODEL, stop=lambda task, share: False, **changes):
    """Evaluate on one thread, interrupted once, when `stop` says so of a task and the share of it that is done."""
    pressed = []

    def progress(task, done, total):
        if not pressed and stop(task, done / total):
            pressed.append(True)
            raise KeyboardInterrupt

    # A tile must take longer than the main thread needs to hear of it.
    arguments = {
        "base": BASE,
        "examples": EXAMPLES,
        "steps": 2000,
        "schedule": "linear",
        "chains": CHAINS,
        "threads": 1,
        "exact": False,
    } | changes
    return mp.evaluate(model, TEST, progress=progress, **arguments)


def at(share):
    return lambda task, done: task == "AIS and RAISE" and done >= share


@pytest.fixture(scope="module")
def whole():
    return evaluate()


@pytest.mark.parametrize("task", ["base rates", COMPILING])
def test_before_ais_nothing_is_known(task, monkeypatch):
    def compile_anew(_path, _processes=1):
        njit(lambda x: x + 1)(1)

    if task == COMPILING:  # which is not said of machine code that is there already
        monkeypatch.setattr(bipartite.PreparedBipartite, "compile", compile_anew)
    with pytest.raises(KeyboardInterrupt) as stop:
        evaluate(stop=lambda heard, _: heard == task, base="model")
    assert not isinstance(stop.value, mp.Interrupted)


def test_in_log_f_nothing_is_known():
    deep = mp.DBM([np.zeros((40, 5)), np.zeros((5, 4))], [np.zeros(40), np.zeros(5), np.zeros(4)])
    with pytest.raises(KeyboardInterrupt) as stop:
        evaluate(deep, lambda task, _: task == "unnormalised probabilities")
    assert not isinstance(stop.value, mp.Interrupted)


def test_in_ais_before_the_first_chain_nothing_is_known():
    with pytest.raises(KeyboardInterrupt) as stop:
        evaluate(stop=at(0.0), ais_chains=TILE, steps=100_000)
    assert not isinstance(stop.value, mp.Interrupted)


def test_an_interruption_is_seen_though_all_chains_finish_after_it(monkeypatch):
    kernel = bipartite._call

    def slow(*arguments):
        time.sleep(0.5)
        kernel(*arguments)

    monkeypatch.setattr(bipartite, "_call", slow)
    with pytest.raises(KeyboardInterrupt):
        evaluate(stop=at(0.0), ais_chains=2, examples=1, steps=10)


@pytest.mark.slow
def test_in_ais_the_finished_chains_are_kept(whole):
    with pytest.raises(mp.Interrupted) as stop:
        evaluate(stop=at(0.15))
    log_z = stop.value.log_z
    done = len(log_z.log_weights)
    assert TILE <= done < CHAINS * EXAMPLES
    np.testing.assert_array_equal(log_z.log_weights, whole.ais_log_weights[:done])
    assert stop.value.optimistic.value == MODEL.log_f(TEST).mean() - log_z.value
    assert str(stop.value) == (
        f"of {CHAINS * EXAMPLES:,} AIS chains, {done} were finished, RAISE had finished no example: optimistic "
        f"{stop.value.optimistic}, conservative unknown (log Z {log_z})"
    )


def test_in_raise_before_the_first_example_ais_is_kept():
    # RAISE's chunks have most of the work, and are far from done.
    with pytest.raises(mp.Interrupted) as stop:
        evaluate(stop=at(0.2), ais_chains=8, examples=TILE // CHAINS, steps=50_000)
    log_z = mp.ais_log_z(MODEL, base=BASE, steps=50_000, chains=8)
    assert stop.value.log_z.value == log_z.value
    assert stop.value.optimistic.value == MODEL.log_f(TEST).mean() - log_z.value
    assert str(stop.value).startswith("AIS was done, RAISE had finished no example: optimistic ")


@pytest.mark.slow
def test_in_raise_the_finished_examples_are_reported(whole):
    report = evaluate(stop=at(0.7))
    done = len(report.per_example.log_prob)
    assert 1 < done < EXAMPLES
    assert report.interrupted
    assert report.settings == whole.settings
    assert report.optimistic == whole.optimistic
    for field in ("positions", "log_prob", "log_weights"):
        np.testing.assert_array_equal(
            getattr(report.per_example, field), getattr(whole.per_example, field)[:done]
        )
    assert report.gap.stderr > whole.gap.stderr
    assert f"after {done} of {EXAMPLES} examples" in str(report)
    assert report.to_dict()["interrupted"] is True


def test_an_error_of_the_callback_is_not_swallowed():
    def progress(task, done, total):
        raise RuntimeError("a bug of the caller's")

    with pytest.raises(RuntimeError, match="a bug of the caller's"):
        mp.evaluate(MODEL, TEST, base=BASE, steps=10, progress=progress)
