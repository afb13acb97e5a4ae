"""The scheduler: whoever computes the chunks of a batch, the results are the same, and nothing finished is lost."""

import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import meltpoint as mp
from meltpoint.errors import RunWarning, SystemFailure
from meltpoint.layers.unit import Floats
from meltpoint.models import Model
from meltpoint.runs.batch import Batch, ranges
from meltpoint.runs.run import Run
from meltpoint.runs.store import open_run
from meltpoint.runs.workers import Workers
from runs.test_store import SPECIFICATION


@dataclass(frozen=True, eq=False)
class Squares:
    squares: Annotated[Floats, "item"]


@dataclass(frozen=True, eq=False)
class Work:
    """Squares of numbers times a factor; at one of them it fails, or the process ends."""

    factor: float
    model: Model | None = None
    fails_at: int = -1
    dies_at: int = -1
    seconds: float = 0.0

    def prepare(self, progress) -> None:
        pass

    def compute(self, items, progress) -> Squares:
        for k in items.tolist():
            progress("squares", k - items[0], len(items))
            if k == self.fails_at:
                raise ZeroDivisionError
            if k == self.dies_at:
                os._exit(1)
            time.sleep(self.seconds)
        added = 0.0 if self.model is None else self.model.log_f(np.zeros((1, self.model.n_visible)))[0]
        return Squares(self.factor * items**2.0 + added)


def batch(items=100, name="squares", steps=100.0, chunk_size=8, **how):
    return Batch(name, Work(0.5, **how), items, steps, chunk_size)


EXPECTED = 0.5 * np.arange(100) ** 2.0


@given(st.integers(0, 3000), st.integers(1, 200))
def test_ranges_cover_everything_once_and_are_even_in_number(n, largest):
    found = ranges(n, largest)
    covered = np.concatenate([np.arange(n)[low:high] for low, high in found] or [np.zeros(0)])
    np.testing.assert_array_equal(covered, np.arange(n))
    sizes = [high - low for low, high in found]
    assert all(0 < size <= largest for size in sizes)
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert len(sizes) % 2 == 0 or set(sizes) == {1}


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
@pytest.mark.parametrize("items", [1, 7, 100])
def test_threads_do_not_matter(threads, items):
    found = Run(threads).results(batch(items), "squares")
    np.testing.assert_array_equal(found.squares, EXPECTED[:items])


def test_progress_counts_all_batches_in_the_callers_thread():
    told = []

    def progress(task, done, total):
        assert threading.current_thread() is threading.main_thread()
        told.append((task, done, total))

    Run(2, progress).together([batch(10), batch(30, "more", 200.0)], "task")
    assert {(task, total) for task, _, total in told} == {("task", 7000.0)}
    amounts = [done for _, done, _ in told]
    assert amounts == sorted(amounts)
    assert amounts[0] == 0
    assert amounts[-1] == 7000


@pytest.mark.parametrize("on_workers", [False, True], ids=["threads", "workers"])
def test_ctrl_c_keeps_what_is_finished_and_the_next_call_computes_the_rest(tmp_path, on_workers):
    def stop(task, done, total):
        if done >= 0.4 * total:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        workers = Workers(pool) if on_workers else None
        with open_run(tmp_path, SPECIFICATION) as folder:
            (found,), interrupted = Run(1, stop, workers, folder).results_so_far(
                [batch(seconds=0.005)], "squares"
            )
        assert interrupted
        assert 0.4 <= found.finished.mean() < 1
        np.testing.assert_array_equal(found.values.squares, EXPECTED[found.finished])
        with open_run(tmp_path, SPECIFICATION) as folder:
            run = Run(1, None, workers, folder)
            np.testing.assert_array_equal(run.results(batch(seconds=0.005), "squares").squares, EXPECTED)
            assert run.spent.steps == 100.0 * (~found.finished).sum()


def test_a_chunk_of_other_work_is_computed_again(tmp_path):
    with open_run(tmp_path, SPECIFICATION) as folder:
        Run(1, folder=folder).results(Batch("squares", Work(2.0), 100, 100.0, 8), "squares")
        found = Run(1, folder=folder).results(batch(), "squares")
        np.testing.assert_array_equal(found.squares, EXPECTED)


@pytest.mark.parametrize(
    "arrays",
    [
        {"squares": np.zeros(7)},
        {"squares": np.zeros((8, 1))},
        {"squares": np.zeros(8, np.int64)},
        {"squares": np.zeros(8), "more": np.zeros(8)},
        {},
    ],
    ids=str,
)
def test_a_chunk_with_other_arrays_is_computed_again(tmp_path, arrays):
    with open_run(tmp_path, SPECIFICATION) as folder:
        run = Run(1, folder=folder)
        run.results(batch(16), "squares")
        kept: Any = folder.load("squares-0000000", lambda found: found)
        folder.write("squares-0000000", {"of": kept["of"], "seconds": kept["seconds"], **arrays})
        with pytest.warns(RunWarning, match="squares-0000000.*computed again"):
            np.testing.assert_array_equal(run.results(batch(16), "squares").squares, EXPECTED[:16])


def test_a_failure_ends_it_after_what_was_finished_is_kept(tmp_path):
    with open_run(tmp_path, SPECIFICATION) as folder:
        with pytest.raises(ZeroDivisionError):
            Run(1, folder=folder).results(batch(fails_at=99), "squares")
        assert len(list(tmp_path.glob("squares-*.npz"))) == 13


def test_a_decision_is_taken_once(tmp_path):
    with open_run(tmp_path, SPECIFICATION) as folder:
        run = Run(1, folder=folder).inside("part-0")
        assert run.once("answer", int, lambda: 42) == 42
        assert run.once("answer", int, lambda: 43) == 42
        assert run.recall("other", int) is None
        with pytest.warns(RunWarning, match="answer.*computed again"):
            assert run.once("answer", str, lambda: "no") == "no"
    assert (tmp_path / "part-0" / "answer.npz").is_file()


class Own:
    """A model of somebody else's, without arrays on disk."""

    n_visible = 1

    def log_f(self, x):
        return np.full(len(x), 7.0)


@pytest.mark.slow
@pytest.mark.parametrize("model", [None, mp.RBM([[0.0]], [0.0], [0.0]), Own()], ids=["none", "RBM", "own"])
def test_processes_get_models_with_arrays_and_without(model):
    added = 0.0 if model is None else model.log_f(np.zeros((1, 1)))[0]
    with ProcessPoolExecutor(2) as pool:
        found = Run(1, None, Workers(pool)).results(batch(model=model), "squares")
    np.testing.assert_array_equal(found.squares, EXPECTED + added)


@pytest.mark.slow
def test_dead_workers_are_one_failure():
    with (
        ProcessPoolExecutor(2) as pool,
        pytest.raises(SystemFailure, match="workers"),
    ):
        Run(1, None, Workers(pool)).results(batch(dies_at=50), "squares")
