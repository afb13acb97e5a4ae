"""Log f of deep models in parts: whoever computes them, and however often it is stopped, the numbers are the same."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import meltpoint as mp
from meltpoint.evaluation import prerequisites
from meltpoint.evaluation.prerequisites import LogFOfExamples, LogFRows, log_f_of
from meltpoint.models.dbn import Directed
from meltpoint.progress import COMPILING
from meltpoint.runs.run import Run
from meltpoint.runs.workers import Workers, processes

RNG = np.random.default_rng(0)
DBM = mp.DBM([RNG.normal(size=(6, 11)), RNG.normal(size=(11, 12))], [RNG.normal(size=n) for n in (6, 11, 12)])
DBN = mp.DBN(
    [Directed(RNG.normal(size=(6, 12)), RNG.normal(size=6), RNG.normal(size=12))],
    mp.RBM(RNG.normal(size=(12, 13)), RNG.normal(size=12), RNG.normal(size=13)),
)
COUPLINGS = np.triu(RNG.normal(size=(20, 20)), 1)
GRAPH = mp.Ising(COUPLINGS + COUPLINGS.T, np.zeros(20), units="bernoulli", hidden=range(6, 20))
STATES = RNG.integers(0, 2, (600, 6)).astype(np.uint8)
FEW = STATES[:40]


class Memory:
    """A store in memory."""

    def __init__(self):
        self.chunks = {}

    def load(self, name, load):
        return load(dict(self.chunks[name])) if name in self.chunks else None

    def write(self, name, arrays):
        self.chunks[name] = arrays


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(prerequisites, "_LOG_F_EXAMPLES", 256)


def same(one, other) -> bool:
    return all(np.array_equal(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))


@pytest.mark.parametrize("model", [DBM, DBN], ids=repr)
def test_parts_are_the_whole(model):
    assert not model.log_f_method()(FEW[:1], np.arange(1)).is_exact
    whole = model.log_f_estimate(STATES, seed=5)
    assert same(log_f_of(model, STATES, 5, Run(1)), whole)
    assert not same(log_f_of(model, STATES, 6, Run(1)), whole)


def test_parts_of_a_graph(monkeypatch):
    monkeypatch.setattr(prerequisites, "_LOG_F_EXAMPLES", 16)
    whole = GRAPH.log_f_estimate(FEW, seed=5)
    assert not whole.is_exact
    found = log_f_of(GRAPH, FEW, 5, Run(1))
    np.testing.assert_allclose(found.values, whole.values, rtol=1e-12)


def test_what_is_exact_is_not_cut():
    store = Memory()
    rbm = mp.RBM(np.ones((6, 2)), np.zeros(6), np.zeros(2))
    found = log_f_of(rbm, STATES, 0, Run(1, folder=store))
    np.testing.assert_array_equal(found.values, rbm.log_f(STATES))
    assert list(store.chunks) == ["log_f"]


@pytest.mark.parametrize("finished", [0, 1, 2])
def test_stopped_anywhere_it_goes_on_from_there(monkeypatch, finished):
    whole = log_f_of(DBM, STATES, 5, Run(1))
    store: Any = Memory()
    counted = []
    compute = LogFOfExamples.compute

    def stopping(work, items, progress) -> LogFRows:
        if len(counted) == finished:
            raise KeyboardInterrupt
        counted.append(f"log_f-{items[0]:07d}")
        return compute(work, items, progress)

    monkeypatch.setattr(LogFOfExamples, "compute", stopping)
    with pytest.raises(KeyboardInterrupt):
        log_f_of(DBM, STATES, 5, Run(1, folder=store))
    assert sorted(store.chunks) == counted
    counted.clear()
    finished = 100  # no more interruptions
    assert same(log_f_of(DBM, STATES, 5, Run(1, folder=store)), whole)
    assert len(store.chunks) == 5
    counted.clear()
    assert same(log_f_of(DBM, STATES, 5, Run(1, folder=store)), whole)
    assert not counted


def test_ctrl_c_within_a_part_does_not_wait_for_its_end():
    told = []

    def progress(task, done, total):
        told.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log_f_of(DBM, STATES, 5, Run(1, progress))
    assert len(told) == 1


def test_progress_grows_to_the_whole():
    told = []
    log_f_of(DBM, STATES, 5, Run(1, lambda *args: told.append(args)))
    told = [call for call in told if call[0] != COMPILING]  # told only where no kernel was compiled before
    assert {task for task, _, _ in told} == {"unnormalised probabilities"}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1:] == (300_000.0, 300_000.0)  # importance samples


@pytest.mark.slow
def test_workers_compute_the_same():
    whole = log_f_of(DBN, STATES, 5, Run(1))
    with processes(2) as executor:
        assert same(log_f_of(DBN, STATES, 5, Run(1, workers=Workers(executor))), whole)


def test_a_number_names_the_random_numbers_of_its_example():
    """The mutant that numbers each chunk from 0 gives other estimates."""
    whole = DBM.log_f_estimate(STATES, seed=5).values[256:512]
    right = DBM.log_f_method(seed=5)(STATES[256:512], np.arange(256, 512)).values
    wrong = DBM.log_f_method(seed=5)(STATES[256:512], np.arange(256)).values
    np.testing.assert_array_equal(right, whole)
    assert (wrong != whole).any()
