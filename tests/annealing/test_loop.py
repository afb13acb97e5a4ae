"""The loop's front: results do not depend on how the work is cut, and an interruption keeps what is done."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meltpoint.annealing.blocks import Segment
from meltpoint.backends.numba import bipartite
from meltpoint.backends.registry import prepare_path
from meltpoint.backends.tiles import anneal
from meltpoint.errors import InputError
from meltpoint.kernels.compiling import check_threads
from meltpoint.kernels.streams import Streams
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
    return {precision: run(precision=precision) for precision in PRECISIONS}


def same(found, expected, chains: Any = slice(None)) -> None:
    np.testing.assert_array_equal(found.state, expected.state[chains])
    np.testing.assert_array_equal(found.log_weights, expected.log_weights[chains])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("tile", [1, 3, 1000])
def test_tiles_do_not_matter(whole, precision, tile) -> None:
    same(run(precision=precision, tile=tile), whole[precision])


@pytest.mark.parametrize("precision", PRECISIONS)
@given(cuts=st.sets(st.integers(1, N_CHAINS - 1), max_size=4))
@settings(max_examples=5, deadline=None)
def test_chains_may_be_run_in_any_parts(whole, precision, cuts) -> None:
    edges = [0, *sorted(cuts), N_CHAINS]
    for low, high in pairwise(edges):
        part = slice(low, high)
        same(run(part, precision=precision), whole[precision], part)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_order_of_chains_does_not_matter(whole, precision) -> None:
    order = np.random.default_rng(1).permutation(N_CHAINS)
    same(run(order, precision=precision), whole[precision], order)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("work", [1, 200_000, 2_000_000])
def test_the_length_of_kernel_calls_does_not_matter(whole, precision, work, monkeypatch) -> None:
    monkeypatch.setattr(bipartite, "_CALL_WORK", work)
    same(run(precision=precision), whole[precision])


def test_clamped_units_keep_their_value_and_others_move() -> None:
    heated = run(segments=SEGMENTS[:1])
    np.testing.assert_array_equal(heated.state[:, CLAMPED], START[:, CLAMPED])
    assert (heated.state[:, ~CLAMPED] != START[:, ~CLAMPED]).any()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_all_units_clamped_leaves_a_telescoping_product(precision) -> None:
    everything = np.ones(PATH.target.n_state, bool)
    found = run(segments=[Segment(BETAS, everything)], precision=precision)
    np.testing.assert_array_equal(found.state, START)
    expected = PATH.log_f(1.0, START) - PATH.log_f(0.0, START)
    np.testing.assert_allclose(found.log_weights, expected, atol=1e-4 if precision != "float64" else 1e-10)


def test_moves_at_one_beta_weigh_nothing() -> None:
    found = run(segments=[Segment(np.full(20, 1.0))])
    assert (found.log_weights == 0).all()


def test_progress_is_told_from_the_callers_thread_and_ends_at_the_total() -> None:
    told, threads = [], set()

    def progress(task, done, total):
        told.append((task, done, total))
        threads.add(threading.current_thread())

    run(tile=2, progress=progress)
    assert threads == {threading.current_thread()}
    annealing = [(done, total) for task, done, total in told if task == "annealing"]
    amounts = [done for done, _ in annealing]
    assert amounts == sorted(amounts)
    assert annealing[-1] == (2 * (BETAS.size - 1) * N_CHAINS,) * 2


def test_an_error_of_progress_ends_it() -> None:
    def interrupt(task, done, total):
        if task == "annealing" and done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tile=1, progress=interrupt)


def test_two_runs_at_once_do_not_disturb_each_other(whole) -> None:
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: run(), range(2)):
            same(found, whole["mixed"])


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "all"])
def test_bad_numbers_of_threads(threads) -> None:
    with pytest.raises(
        InputError, match=f"found threads={threads!r}, expected a whole number from 1 on.*: leave it out"
    ):
        check_threads(threads)


def test_threads_left_out_are_all_that_may_be_used() -> None:
    assert check_threads(None) >= 1
    assert check_threads(3) == 3
