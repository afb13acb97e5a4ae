"""Base rates, pilots and other starts as tasks: whoever runs their chains, and however often it is stopped."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest

import meltpoint as mp
from evaluation.kept import DEEP, MODEL, STACK, TEST, TRAIN, evaluate, plain, whole
from meltpoint.annealing.base import uniform
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.tiles import Annealed
from meltpoint.errors import RunWarning
from meltpoint.estimators import chain_batches as chains_module
from meltpoint.estimators.base_rates import rates_of_chains
from meltpoint.estimators.chain_batches import Annealing, chains_batch
from meltpoint.estimators.pilot import run_pilot
from meltpoint.evaluation import prerequisites
from meltpoint.kernels.streams import Streams
from meltpoint.randomness import Purpose
from meltpoint.runs.run import Run
from meltpoint.runs.workers import Workers

COUPLINGS = np.triu(np.random.default_rng(1).normal(size=(24, 24)), 1)
GRAPH = mp.Ising(COUPLINGS + COUPLINGS.T, np.zeros(24), hidden=range(20, 24))
POTTS = mp.RBM(
    np.random.default_rng(2).normal(size=(5, 3, 4)), np.zeros((5, 3)), np.zeros(4), visible="potts"
)
SPINS = 2 * TRAIN[:, :20] - 1
SETTINGS = {"steps": 30, "chains": 2, "ais_chains": 20, "examples": 10}


class Memory:
    """A folder in memory."""

    def __init__(self):
        self.chunks = {}

    def load(self, name, load):
        return load(dict(self.chunks[name])) if name in self.chunks else None

    def write(self, name, arrays):
        self.chunks[name] = arrays


def stop_at(share, task):
    def progress(name, done, total):
        if name == task and done >= share * total:
            raise KeyboardInterrupt

    return progress


@contextmanager
def counted_chains():
    """Numbers of chains that are annealed within this, chunk by chunk."""
    counted = []
    compute = chains_module.Chains.compute

    def counting(self, items, progress) -> Annealed:
        found = compute(self, items, progress)
        if sum(segment.steps for segment in self.segments) > 10:  # a few moves are not kept
            counted.append(len(items))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains_module.Chains, "compute", counting)
        yield counted


@pytest.fixture
def run_chains():
    with counted_chains() as counted:
        yield counted


@cache
def uninterrupted(model):
    """The report of a run that is stopped nowhere, and how many chains it anneals."""
    with counted_chains() as counted:
        return plain(mp.evaluate(model, TEST, base="model", **SETTINGS)), sum(counted)


@cache
def uninterrupted_pilot(with_examples):
    with counted_chains() as counted:
        return pilot(DEEP, TRAIN if with_examples else None, Run(1)), sum(counted)


def pilot(model, train, run):
    states = None if train is None else model.encode(train)
    return run_pilot(model, states, uniform(), 100, 7, run.inside("pilot"))


@pytest.mark.parametrize(
    ("model", "train"),
    [(MODEL, TRAIN), (DEEP, TRAIN), (STACK, TRAIN), (STACK, None), (GRAPH, SPINS), (POTTS, None)],
    ids=lambda value: "" if isinstance(value, np.ndarray) else repr(value),
)
def test_pilots_and_rates_are_the_same_whoever_runs_them(model, train):
    whole = mp.friction_schedule(model, train, steps=100, seed=7, threads=1)
    rates = mp.model_rates(model, seed=7, threads=1)
    for n in (None, 1, 3):
        with ThreadPoolExecutor(n or 1) as executor:
            run = Run(2, workers=Workers(executor) if n else None)
            found = pilot(model, train, run)
            again = rates_of_chains(model, 7, run)
        np.testing.assert_array_equal(found.friction, whole.friction)
        np.testing.assert_array_equal(found.edges, whole.edges)
        assert found.pilot == whole.pilot
        np.testing.assert_array_equal(again.biases, rates.biases)


@pytest.mark.parametrize("executor", [False, True], ids=["threads", "executor"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("train", [TRAIN, None], ids=["examples", "no examples"])
def test_a_pilot_that_is_stopped_anywhere_goes_on_from_there(share, train, executor, run_chains):
    whole, alone = uninterrupted_pilot(train is not None)
    assert alone == 4 * 64
    folder: Any = Memory()
    with ThreadPoolExecutor(1) as pool:
        run = Run(1, stop_at(share, "pilot"), Workers(pool) if executor else None, folder)
        with pytest.raises(KeyboardInterrupt):
            pilot(DEEP, train, run)
    kept = len(folder.chunks)
    assert kept >= {0.0: 0, 0.3: 1, 0.5: 2, 0.8: 4, 0.99: 6}[share] - (train is not None)
    run_chains.clear()
    found = pilot(DEEP, train, Run(1, folder=folder))
    np.testing.assert_array_equal(found.friction, whole.friction)
    assert found.pilot == whole.pilot
    assert sum(run_chains) == 4 * 64 - 32 * kept
    assert len(folder.chunks) == 8


def batch(betas=50, state=0, seed=1, bias=0.0):
    annealing = Annealing(MODEL, mp.Base("own", (np.full(24, bias),)))
    segments = [Segment(np.linspace(0, 1, betas + 1))]
    streams = Streams(seed, Purpose.PILOT, np.arange(6))
    return chains_batch("name", annealing, segments, np.full((6, 24), state, np.uint8), streams)


def test_chains_that_were_others_are_not_taken_for_these():
    """Neither with another schedule nor from another base or start nor with another seed."""
    folder: Any = Memory()
    run = Run(1, folder=folder).inside("folder")
    for asked in (batch(), batch(51), batch(seed=2), batch(bias=0.5), batch(state=1), batch()):
        found, fresh = run.results(asked, "task"), Run(1).results(asked, "task")
        np.testing.assert_array_equal(found.log_weights, fresh.log_weights)
        np.testing.assert_array_equal(found.state, fresh.state)
    assert sorted(folder.chunks) == ["folder/name-0000000", "folder/name-0000003"]


def test_what_takes_a_few_steps_is_neither_sent_nor_kept():
    folder: Any = Memory()
    Run(1, folder=folder).results(batch(10), "task")
    assert folder.chunks == {}


@pytest.mark.parametrize("model", [MODEL, STACK], ids=repr)
@pytest.mark.parametrize("task", ["base rates", "pilot", "other starts", "sampling"])
def test_a_run_that_is_stopped_inside_goes_on_to_the_bit(model, task, tmp_path, run_chains):
    whole, alone = uninterrupted(model)
    with ThreadPoolExecutor(2) as executor:
        options = {"run": tmp_path / "run", "progress": stop_at(0.5, task), "executor": executor}
        try:
            report = mp.evaluate(model, TEST, base="model", **options, **SETTINGS)
            assert report.interrupted or task == "sampling"
        except KeyboardInterrupt:
            assert task in ("base rates", "pilot")
    run_chains.clear()
    assert plain(mp.evaluate(model, TEST, base="model", run=tmp_path / "run", **SETTINGS)) == whole
    assert sum(run_chains) < alone
    assert run_chains or task == "sampling"
    run_chains.clear()
    assert plain(mp.evaluate(model, TEST, base="model", run=tmp_path / "run", **SETTINGS)) == whole
    assert run_chains == []


def test_a_damaged_range_of_a_pilot_is_run_again(tmp_path, run_chains):
    expected = whole(MODEL)
    evaluate(run=tmp_path)
    for name in ("schedule-data", "pilot-data/0-down-0000032"):
        (tmp_path / f"{name}.npz").write_bytes(b"PK")
    run_chains.clear()
    with pytest.warns(RunWarning, match=r"(schedule-data|0-down-0000032)\.npz, .*is computed again"):
        assert plain(evaluate(run=tmp_path)) == expected
    assert sum(run_chains) == 32


def test_the_steps_that_the_clock_has_chosen_for_a_pilot_stay(tmp_path, monkeypatch):
    """A budget's pilot that is stopped goes on with the steps that it had, however fast the machine is then."""
    arguments = {"train": TRAIN, "base": "data", "gap": 0.5, "budget": 20.0, "run": tmp_path}
    asked = []

    def steps(*_):
        asked.append(1)
        return 100 + len(asked)

    monkeypatch.setattr(prerequisites, "pilot_steps_within", steps)
    with pytest.raises(KeyboardInterrupt):
        mp.evaluate(MODEL, TEST, progress=stop_at(0.5, "pilot"), **arguments)
    assert mp.evaluate(MODEL, TEST, **arguments).pilot.steps == 101
    assert len(asked) == 1
