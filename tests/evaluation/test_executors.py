"""Whoever computes the tasks, the report is the same to the last bit."""

import multiprocessing
import os
import pickle
import signal
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from threading import Barrier, Lock, Timer

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meltpoint as mp
from evaluation.kept import DEEP, MODEL, STACK, TEST, evaluate, plain, whole
from meltpoint.annealing import loop
from meltpoint.backends.registry import prepare_path
from meltpoint.errors import SystemFailure
from meltpoint.evaluation.stored import read_run
from meltpoint.runs.dask import dask_cluster
from meltpoint.runs.fingerprint import fingerprint
from meltpoint.runs.processes import processes
from meltpoint.stages.execute import Execution, PreparedStage, load_payload, run_stage
from meltpoint.stages.old_sending import payload_of
from meltpoint.stages.stage import (
    Size,
    Stage,
    Task,
    stage_from_arrays,
    stage_to_arrays,
    tasks_of,
)

MODELS = [MODEL, DEEP, STACK]


def stage_of(model, **changes):
    rng = np.random.default_rng(0)
    arguments = {
        "examples": rng.integers(0, 2, (50, 24), np.uint8),
        "positions": np.arange(50),
        "base": mp.data_rates(rng.integers(0, 2, (9, 24)), model),
        "betas": np.linspace(0, 1, 21),
        "chains": 5,
        "ais_chains": 300,
        "seed": 2**80 + 1,
        "precision": "mixed",
    }
    return Stage(model=model, **(arguments | changes))


@settings(max_examples=2 * settings().max_examples)
@given(st.integers(1, 3000), st.integers(1, 200), st.integers(1, 3000))
def test_tasks_cover_everything_once_in_ranges_of_a_sensible_size(examples, chains, ais_chains):
    tasks = tasks_of(Size(1, examples, chains, ais_chains))
    for estimator, n, largest in (("ais", ais_chains, 64), ("raise", examples, max(1, 64 // chains))):
        own = [task for task in tasks if task.estimator == estimator]
        covered = np.concatenate([np.arange(n)[task.part] for task in own])
        np.testing.assert_array_equal(covered, np.arange(n))
        sizes = [task.count for task in own]
        assert max(sizes) <= largest
        assert max(sizes) - min(sizes) <= 1
    assert len({task.name for task in tasks}) == len(tasks)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_any_range_has_the_weights_of_the_whole(model):
    stage = stage_of(model, seed=3)
    prepared = PreparedStage(stage)
    log_z = mp.ais_log_z(model, base=stage.base, steps=20, chains=300, seed=3)
    prob = mp.raise_log_prob(model, stage.examples, base=stage.base, steps=20, chains=5, seed=3)
    for task in (Task("ais", 0, 1), Task("ais", 63, 100), Task("ais", 299, 1)):
        found = prepared.compute(task)["log_weights"]
        np.testing.assert_array_equal(found, log_z.log_weights[task.part])
    for task in (Task("raise", 0, 1), Task("raise", 7, 33), Task("raise", 49, 1)):
        found = prepared.compute(task)
        np.testing.assert_array_equal(found["log_weights"], prob.log_weights[task.part])
        assert found["log_reverse_weights"].shape == found["log_weights"].shape
        if isinstance(model, mp.RBM):
            log_f = model.log_f(stage.examples[task.part])[:, np.newaxis]
            np.testing.assert_allclose(found["log_reverse_weights"], log_f - found["log_weights"], atol=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_parts_are_the_chains_of_a_larger_run(model):
    larger = run_stage(stage_of(model, chains=10, ais_chains=600), Execution(threads=2)).weights
    for part in (0, 1):
        found = run_stage(stage_of(model, part=part), Execution(threads=2))
        assert found.complete
        own = found.weights.log_z().log_weights
        np.testing.assert_array_equal(own, larger.log_z().log_weights[300 * part : 300 * part + 300])
        for mine, all_of_them in zip(found.weights.melted(), larger.melted(), strict=True):
            np.testing.assert_array_equal(mine, all_of_them[:, 5 * part : 5 * part + 5])


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_stage_survives_its_journey(model, tmp_path):
    stage = stage_of(model, index=3, part=2)
    for sent in (
        payload_of(stage_to_arrays(stage)),
        payload_of(stage_to_arrays(stage)).in_file(tmp_path / "stage.npz"),
    ):
        arrived = load_payload(pickle.loads(pickle.dumps(sent))).stage
        assert (
            fingerprint(stage_to_arrays(arrived)) == fingerprint(stage_to_arrays(stage)) == sent.fingerprint
        )
        assert (arrived.seed, arrived.index, arrived.part) == (2**80 + 1, 3, 2)
        assert repr(arrived.model) == repr(model)


def test_workers_with_another_method_refuse():
    arrays = stage_to_arrays(stage_of(MODEL)) | {"method": np.array(99)}
    with pytest.raises(
        mp.InputError, match=r"found version 99 of the method, .*: install the same meltpoint"
    ):
        stage_from_arrays(arrays)


def test_a_worker_that_does_not_see_the_file_says_so(tmp_path):
    sent = payload_of(stage_to_arrays(stage_of(MODEL, seed=11))).in_file(tmp_path / "stage.npz")
    (tmp_path / "stage.npz").unlink()
    with pytest.raises(mp.InputError, match=r"on a worker .*, expected workers that see the disk") as stop:
        load_payload(sent)
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

    def open_it(_):
        together.wait()
        return load_payload(sent).path

    monkeypatch.setattr("meltpoint.stages.execute.prepare_path", counting)
    sent = payload_of(stage_to_arrays(stage_of(MODEL, seed=12)))
    with ThreadPoolExecutor(4) as threads:
        assert len(set(map(id, threads.map(open_it, range(4))))) == 1
    assert len(laid_out) == 1


class Backwards(Executor):
    """Computes what it was given at once, last task first, each as from another process: only pickles are shared.

    What is given at once is what comes before a tenth of a second passes without a task.
    """

    def __init__(self):
        self.calls, self.sizes, self.functions = [], [], []
        self.timer = None
        self.lock = Lock()

    def submit(self, function, /, *arguments):
        future = Future()
        message = pickle.dumps((function, arguments))
        self.sizes.append(len(message))
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


def test_the_order_does_not_matter_and_the_model_does_not_travel_with_tasks():
    executor = Backwards()
    assert plain(evaluate(executor=executor)) == whole(MODEL)
    assert max(executor.sizes) < 1000


@pytest.mark.parametrize("model", [MODEL, DEEP, STACK], ids=repr)
def test_base_rates_of_the_model_and_pilots_are_given_to_an_executor(model, monkeypatch):
    """Nothing but a few moves at a mode is annealed in this process."""
    settings = {"base": "model", "steps": 30, "chains": 2, "ais_chains": 20, "examples": 10}
    alone = plain(mp.evaluate(model, TEST, **settings))
    here = []
    run = loop.anneal

    def noting(prepared, segments, *arguments, **options):
        if threading.current_thread() is threading.main_thread():
            here.append(max(segment.steps for segment in segments))
        return run(prepared, segments, *arguments, **options)

    monkeypatch.setattr("meltpoint.annealing.chains.anneal", noting)
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
    kept = read_run(tmp_path).stages[0].weights
    assert kept.ais_chains > 0
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
