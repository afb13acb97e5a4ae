"""Whoever computes the tasks, the report is the same to the last bit."""

import multiprocessing
import os
import pickle
import signal
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Lock, Timer

import numpy as np
import pytest

import meltpoint as mp
from evaluation.kept import DEEP, MODEL, STACK, TEST, evaluate, plain, whole
from meltpoint.backends import tiles
from meltpoint.backends.registry import prepare_path
from meltpoint.errors import SystemFailure
from meltpoint.estimators.ais import ForwardChains
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.evaluation.stage import Size, Stage, run_stage
from meltpoint.evaluation.stored import read_run
from meltpoint.fingerprint import fingerprint
from meltpoint.runs import workers
from meltpoint.runs.dask import dask_cluster
from meltpoint.runs.records import from_arrays, to_arrays
from meltpoint.runs.run import Run
from meltpoint.runs.specification import METHOD
from meltpoint.runs.workers import processes

MODELS = [MODEL, DEEP, STACK]


def stage_of(model, part=0, **changes):
    rng = np.random.default_rng(0)
    size = replace(Size(20, 50, 5, 300), **changes)
    return Stage(
        size,
        mp.data_rates(rng.integers(0, 2, (9, 24)), model),
        np.linspace(0, 1, 21),
        np.arange(50),
        rng.integers(0, 2, (50, 24), np.uint8),
        2**80 + 1,
        number=3,
        part=part,
    )


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_any_items_have_the_weights_of_the_whole(model):
    stage = replace(stage_of(model), seed=3)
    ais, raised = stage.batches(model, "mixed")
    log_z = mp.ais_log_z(model, base=stage.base, steps=20, chains=300, seed=3)
    prob = mp.raise_log_prob(model, stage.examples, base=stage.base, steps=20, chains=5, seed=3)
    for low, high in ((0, 1), (63, 163), (299, 300)):
        found = ais.work.compute(np.arange(low, high), lambda *_: None)
        np.testing.assert_array_equal(found.log_weights, log_z.log_weights[low:high])
    for low, high in ((0, 1), (7, 40), (49, 50)):
        found = raised.work.compute(np.arange(low, high), lambda *_: None)
        np.testing.assert_array_equal(found.log_weights, prob.log_weights[low:high])
        if isinstance(model, mp.RBM):
            log_f = model.log_f(stage.examples[low:high])[:, np.newaxis]
            np.testing.assert_allclose(found.log_reverse_weights, log_f - found.log_weights, atol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_parts_are_the_chains_of_a_larger_run(model):
    larger = run_stage(stage_of(model, chains=10, ais_chains=600), model, "mixed", Run(2))
    for part in (0, 1):
        found = run_stage(stage_of(model, part=part), model, "mixed", Run(2))
        assert found.complete
        own = found.ais.values.log_weights
        np.testing.assert_array_equal(own, larger.ais.values.log_weights[300 * part : 300 * part + 300])
        for mine, all_of_them in zip(found.melted, larger.melted, strict=True):
            np.testing.assert_array_equal(mine, all_of_them[:, 5 * part : 5 * part + 5])


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_stage_comes_back(model):
    stage = stage_of(model, part=2)
    found = from_arrays(Stage, to_arrays(stage))
    assert fingerprint(to_arrays(found)) == fingerprint(to_arrays(stage))
    assert (found.seed, found.number, found.part) == (2**80 + 1, 3, 2)


def pickled(seed):
    return workers.dumps(ForwardChains(Annealing(MODEL, mp.uniform()), np.linspace(0, 1, 21), seed))


def test_workers_with_another_method_refuse():
    with pytest.raises(
        mp.InputError, match=r"found version 99 of the method, .*: install the same meltpoint"
    ) as stop:
        workers._compute(99, pickled(11), 0, 1)
    assert str(pickle.loads(pickle.dumps(stop.value))) == str(stop.value)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("n", [1, 3])
def test_threads_of_an_executor(model, n):
    with ThreadPoolExecutor(n) as executor:
        assert plain(evaluate(model, executor=executor)) == whole(model)


def test_threads_of_a_worker_share_what_one_of_them_lays_out(monkeypatch):
    laid_out, together = [], Barrier(4)

    def counting(*arguments):
        laid_out.append(1)
        return prepare_path(*arguments)

    def compute(_):
        together.wait()
        return workers._compute(METHOD, bytes(sent), 0, 2)

    monkeypatch.setattr("meltpoint.estimators.chain_batches.prepare_path", counting)
    sent = pickled(12)
    with ThreadPoolExecutor(4) as threads:
        assert len(list(threads.map(compute, range(4)))) == 4
    assert len(laid_out) == 1


class Backwards(Executor):
    """Computes what it was given at once, last task first, each as from another process: only pickles are shared.

    What is given at once is what comes before a tenth of a second passes without a task.
    """

    def __init__(self):
        self.calls, self.functions = [], []
        self.timer = None
        self.lock = Lock()

    def submit(self, function, /, *arguments):
        future = Future()
        message = pickle.dumps((function, arguments))
        self.functions.append(function.__module__)
        with self.lock:
            self.calls.append((message, future))
            if self.timer is not None:
                self.timer.cancel()
            self.timer = Timer(0.1, self.compute)
            self.timer.start()
        return future

    def compute(self):
        with self.lock:
            calls, self.calls = self.calls, []
        for sent, waiting in reversed(calls):
            call, given = pickle.loads(sent)
            waiting.set_result(pickle.loads(pickle.dumps(call(*given))))


def test_the_order_does_not_matter():
    executor = Backwards()
    assert plain(evaluate(executor=executor)) == whole(MODEL)
    assert set(executor.functions) == {"meltpoint.runs.workers"}


@pytest.mark.parametrize("model", [MODEL, DEEP, STACK], ids=repr)
def test_base_rates_of_the_model_and_pilots_are_given_to_an_executor(model, monkeypatch):
    """Nothing but a few moves at a mode is annealed in this process."""
    settings = {"base": "model", "steps": 30, "chains": 2, "ais_chains": 20, "examples": 10}
    alone = plain(mp.evaluate(model, TEST, **settings))
    here = []
    run = tiles.anneal

    def noting(prepared, segments, *arguments, **options):
        if threading.current_thread() is threading.main_thread():
            here.append(max(segment.steps for segment in segments))
        return run(prepared, segments, *arguments, **options)

    monkeypatch.setattr("meltpoint.estimators.chain_batches.anneal", noting)
    with ThreadPoolExecutor(2) as executor:
        assert plain(mp.evaluate(model, TEST, executor=executor, **settings)) == alone
    assert max(here, default=0) <= 10


@pytest.mark.slow
def test_processes_that_are_killed_lose_only_what_was_unfinished(tmp_path):
    def kill(task, done, total):
        if task == "AIS and RAISE" and done > 0:
            for child in multiprocessing.active_children():
                os.kill(child.pid, signal.SIGKILL)

    with (
        pytest.raises(
            SystemFailure, match=r"workers that ended before their work was done .*\(run=, --run\) cont"
        ),
        processes(2) as executor,
    ):
        evaluate(run=tmp_path, executor=executor, progress=kill, steps=3000)
    kept = read_run(tmp_path).stages[0]
    assert kept.ais.finished.any()
    assert not kept.complete
    assert plain(evaluate(run=tmp_path, steps=3000)) == plain(evaluate(steps=3000))


@pytest.fixture(scope="module")
def two_processes():
    with processes(2) as executor:
        yield executor


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_processes(two_processes, model):
    assert plain(evaluate(model, executor=two_processes)) == whole(model)


@pytest.mark.slow
def test_somebody_elses_processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        assert plain(evaluate(executor=executor)) == whole(MODEL)


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_cluster(dask, model):
    with dask_cluster(dask.scheduler_address) as executor:
        assert plain(evaluate(model, executor=executor)) == whole(model)


@pytest.mark.slow
def test_a_cluster_whose_worker_has_several_threads():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=3, dashboard_address="127.0.0.1:0") as made,
        dask_cluster(made.scheduler_address) as executor,
    ):
        assert plain(evaluate(executor=executor)) == whole(MODEL)


@pytest.mark.slow
def test_a_cluster_survives_the_death_of_a_worker(dask):
    killed = []

    def kill(task, done, total):
        if task == "AIS and RAISE" and 0 < done < total and not killed:
            killed.append(dask.workers[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    with dask_cluster(dask.scheduler_address) as executor:
        assert plain(evaluate(executor=executor, progress=kill, steps=3000)) == plain(evaluate(steps=3000))
    assert killed
