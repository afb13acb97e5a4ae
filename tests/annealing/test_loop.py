"""The loop's front: results do not depend on how the work is cut, and an interruption keeps what is done."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.annealing import loop as front
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.loop import anneal, prepare_path
from meltpoint.backends.numba import layered as fused
from meltpoint.errors import InputError
from meltpoint.kernels.streams import Streams
from meltpoint.kernels.threads import check_threads
from meltpoint.randomness import Purpose
from oracle.driving import models

N_CHAINS = 23
PRECISIONS = ["mixed", "float32", "float64"]
MODEL = models.dbm(61, [40, 35, 9], scale=0.5)
PATH = MODEL.path(models.base("every layer", MODEL))
PREPARED = {precision: prepare_path(PATH, precision) for precision in PRECISIONS}
BETAS = np.linspace(0, 1, 60)
CLAMPED = np.arange(PATH.target.n_state) < 40
SEGMENTS = [Segment(BETAS, CLAMPED), Segment(BETAS[::-1].copy(), reversed_sweeps=True)]
START = np.random.default_rng(0).integers(0, 2, (N_CHAINS, PATH.target.n_state), np.uint8)
KEYS = np.arange(N_CHAINS)


def run(chains: Any = slice(None), precision="mixed", segments=SEGMENTS, **options):
    streams = Streams(3, Purpose.RAISE, KEYS[chains])
    return anneal(PREPARED[precision], segments, START[chains], streams, **options)


@pytest.fixture(scope="module")
def whole():
    return {precision: run(precision=precision, threads=1) for precision in PRECISIONS}


def same(found, expected, chains: Any = slice(None)) -> None:
    np.testing.assert_array_equal(found.state, expected.state[chains])
    np.testing.assert_array_equal(found.log_weights, expected.log_weights[chains])
    assert found.finished.all()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("tile", [1, 3, 1000])
def test_threads_and_tiles_do_not_matter(whole, precision, threads, tile) -> None:
    same(run(precision=precision, threads=threads, tile=tile), whole[precision])


@pytest.mark.parametrize("precision", PRECISIONS)
@given(cuts=st.sets(st.integers(1, N_CHAINS - 1), max_size=4))
@settings(max_examples=5, deadline=None)
def test_chains_may_be_run_in_any_parts(whole, precision, cuts) -> None:
    edges = [0, *sorted(cuts), N_CHAINS]
    for low, high in pairwise(edges):
        part = slice(low, high)
        same(run(part, precision=precision, threads=1), whole[precision], part)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_order_of_chains_does_not_matter(whole, precision) -> None:
    order = np.random.default_rng(1).permutation(N_CHAINS)
    same(run(order, precision=precision, threads=2), whole[precision], order)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("work", [1, 200_000, 2_000_000])
def test_the_length_of_kernel_calls_does_not_matter(whole, precision, work, monkeypatch) -> None:
    monkeypatch.setattr(fused, "_CALL_WORK", work)
    same(run(precision=precision, threads=1), whole[precision])


def test_clamped_units_keep_their_value_and_others_move() -> None:
    heated = run(segments=SEGMENTS[:1], threads=1)
    np.testing.assert_array_equal(heated.state[:, CLAMPED], START[:, CLAMPED])
    assert (heated.state[:, ~CLAMPED] != START[:, ~CLAMPED]).any()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_all_units_clamped_leaves_a_telescoping_product(precision) -> None:
    everything = np.ones(PATH.target.n_state, bool)
    found = run(segments=[Segment(BETAS, everything)], precision=precision, threads=1)
    np.testing.assert_array_equal(found.state, START)
    expected = PATH.log_f(1.0, START) - PATH.log_f(0.0, START)
    np.testing.assert_allclose(found.log_weights, expected, atol=1e-4 if precision != "float64" else 1e-10)


def test_moves_at_one_beta_weigh_nothing() -> None:
    found = run(segments=[Segment(np.full(20, 1.0))], threads=1)
    assert (found.log_weights == 0).all()


def test_progress_is_told_from_the_callers_thread_and_ends_at_the_total() -> None:
    told, threads = [], set()

    def progress(task, done, total):
        told.append((task, done, total))
        threads.add(threading.current_thread())

    run(threads=2, tile=2, progress=progress)
    assert threads == {threading.current_thread()}
    annealing = [(done, total) for task, done, total in told if task == "annealing"]
    amounts = [done for done, _ in annealing]
    assert amounts == sorted(amounts)
    assert annealing[-1] == (2 * (BETAS.size - 1) * N_CHAINS,) * 2


def test_an_interruption_keeps_the_chains_that_were_finished(whole) -> None:
    def interrupt(task, done, total):
        if task == "annealing" and done > 0:
            raise KeyboardInterrupt

    found = run(threads=1, tile=1, progress=interrupt)
    done = found.finished
    assert found.interrupted
    np.testing.assert_array_equal(found.state[done], whole["mixed"].state[done])
    np.testing.assert_array_equal(found.log_weights[done], whole["mixed"].log_weights[done])


def test_an_interruption_before_anything_is_done_finishes_nothing(monkeypatch) -> None:
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    started = Event()
    monkeypatch.setattr(front, "wait", interrupted)
    monkeypatch.setattr(fused.FusedPath, "_run", lambda *_: iter([started.wait(0.2)]))
    found = run(threads=1, tile=1)
    assert found.interrupted
    assert not found.finished.any()
    np.testing.assert_array_equal(found.state, START)


def test_an_interruption_at_the_very_end_is_known_and_loses_nothing(whole) -> None:
    def progress(task, done, total):
        if task == "annealing" and done == total:
            raise KeyboardInterrupt

    found = run(threads=1, tile=8, progress=progress)
    assert found.interrupted
    same(found, whole["mixed"])


def test_a_failure_in_a_tile_is_not_swallowed(monkeypatch) -> None:
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(fused.FusedPath, "_run", fail)
    with pytest.raises(ZeroDivisionError):
        run(threads=2)


def test_tiles_of_a_group_advance_together_and_later_groups_wait(whole, monkeypatch) -> None:
    kernel, order = fused._call, []

    def call(packed, betas, clamped, state, generators, log_weights, pending_product):
        if betas.size > 1:  # not what is done to compile
            order.append(log_weights.size)
        kernel(packed, betas, clamped, state, generators, log_weights, pending_product)

    monkeypatch.setattr(fused, "_call", call)
    monkeypatch.setattr(fused, "_LEAST_WORK", 0)
    monkeypatch.setattr(front, "_cut", lambda *_: [slice(0, 10), slice(10, 14), slice(14, 23)])
    same(run(threads=1), whole["mixed"])
    first, rest = order[: order.count(10)], order[order.count(10) :]
    assert set(first) == {10}  # the first group has a single tile, so that the last one is full
    assert rest == [4, 9] * (len(rest) // 2)
    assert len(first) == len(rest) // 2 > 4


def test_there_is_a_tile_more_than_threads_where_chains_are_many_enough() -> None:
    def sizes(*how):
        return [part.stop - part.start for part in front._cut(*how)]

    assert sizes(100, 2, 128) == [33, 33, 34]
    assert sizes(40, 2, 128) == [20, 20]
    assert sizes(100, 1, 128) == [100]
    assert sizes(3, 8, 128) == [1, 1, 1]
    assert len(sizes(10_000, 2, 128)) == 81


def test_tiles_end_where_a_vector_of_chains_does() -> None:
    def sizes(*how):
        return [part.stop - part.start for part in front._cut(*how)]

    assert sizes(100, 2, 128, 32) == [32, 32, 36]
    assert sizes(40, 2, 128, 32) == [32, 8]
    assert sizes(3, 8, 128, 32) == [3]
    assert sum(sizes(1001, 3, 128, 32)) == 1001


def test_two_runs_at_once_do_not_disturb_each_other(whole) -> None:
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: run(threads=1), range(2)):
            same(found, whole["mixed"])


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "all"])
def test_bad_numbers_of_threads(threads) -> None:
    with pytest.raises(
        InputError, match=f"found threads={threads!r}, expected a whole number from 1 on: leave it out"
    ):
        check_threads(threads)


def test_threads_left_out_are_all_that_may_be_used() -> None:
    assert check_threads(None) >= 1
    assert check_threads(3) == 3
