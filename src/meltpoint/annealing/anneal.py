"""The loop's front: chains in tiles, tiles on threads, progress, and an interruption that keeps what is done."""

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.family import Family
from meltpoint.annealing.kernels.blocks import to_bits, to_words
from meltpoint.annealing.kernels.packing import Packed, padded_columns
from meltpoint.annealing.kernels.tile import run_tile
from meltpoint.annealing.precision import Precision, Stretch, Walk, prepare
from meltpoint.annealing.streams import LANES
from meltpoint.errors import InputError, Progress
from meltpoint.models.checks import Bits, Floats

TILE = 128
_CALL_WORK = 4_000_000_000  # unit pairs per kernel call: a fraction of a second
_STEP_WORK = 50_000  # what a chain-step costs besides its unit pairs, counted in them
_PATIENCE = 0.1  # seconds between looks at the progress


@dataclass(frozen=True)
class Leg:
    """One run through betas, with some even units frozen or none."""

    betas: Floats
    frozen: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Annealed:
    """Final even states (chain, unit), log weights after each leg (chain, leg), finished chains (chain,)."""

    state: Bits
    passed: Floats
    finished: NDArray[np.bool_]

    @property
    def log_weights(self) -> Floats:
        """Log weights (chain,) of the whole way."""
        return self.passed[:, -1]


def anneal(
    family: Family,
    legs: Sequence[Leg],
    state: Bits,
    generators: NDArray[np.uint32],
    *,
    precision: Precision = "mixed",
    walk: Walk | None = None,
    threads: int | None = None,
    tile: int = TILE,
    progress: Progress | None = None,
    task: str = "annealing",
) -> Annealed:
    """Take every chain through the legs, one after the other, and add up its log weight leg by leg.

    `state` (chain, even unit) is where the chains start and `generators` (chain, 4, LANES) their streams, from
    `chain_generators`. The result does not depend on threads, tile or the order in which chains are run. Ctrl-C
    ends the run early; the chains that were finished by then are kept, and marked. A `walk` that `prepare` has
    made of this family and precision saves laying it out once more.
    """
    threads = check_threads(threads)
    progress = progress or _silent
    n_chains = len(state)
    walk = walk or prepare(family, precision)
    compile_kernels(walk, progress)
    steps = sum(leg.betas.size - 1 for leg in legs)
    n_tiles = threads * -(-n_chains // (threads * tile))  # as many for each thread
    edges = np.linspace(0, n_chains, min(n_tiles, n_chains) + 1).astype(int)
    tiles = [slice(low, high) for low, high in itertools.pairwise(edges)]
    result = Annealed(state.copy(), np.zeros((n_chains, len(legs))), np.zeros(n_chains, np.bool_))
    done = np.zeros(len(tiles), np.int64)  # chain-steps; each tile writes its own entry
    stop = Event()
    with ThreadPoolExecutor(threads) as pool:
        futures: list[Future[None]] = []
        try:
            for k, part in enumerate(tiles):
                job = _Tile(walk, legs, result, part, generators[part].copy(), done[k : k + 1], stop)
                futures.append(pool.submit(job.run))
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, timeout=_PATIENCE, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()
                progress(task, float(done.sum()), float(n_chains * steps))
        except BaseException as problem:
            stop.set()
            for future in futures:
                future.cancel()
            if not isinstance(problem, KeyboardInterrupt):
                raise
    return result


def check_threads(threads: int | None) -> int:
    """The number of threads: as given, or all cores this process may use."""
    if threads is None:
        usable = getattr(os, "sched_getaffinity", None)
        return len(usable(0)) if usable else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError(
            found=f"threads={threads!r}",
            expected="a whole number from 1 on",
            remedy="leave it out for all cores",
        )
    return int(threads)


@dataclass(frozen=True)
class _Tile:
    """Some of the chains, on their way through all legs on one thread."""

    walk: Walk
    legs: Sequence[Leg]
    result: Annealed
    part: slice
    generators: NDArray[np.uint32]
    done: NDArray[np.int64]
    stop: Event

    def run(self) -> None:
        even = self.walk.exact_packed.even
        columns = padded_columns(even.sizes, even.starts)

        def units() -> Bits:
            return to_bits(state)[:, columns]

        def words(bits: NDArray[np.generic]) -> NDArray[np.uint32]:
            spread = np.zeros((*bits.shape[:-1], even.starts[-1]), np.uint8)
            spread[..., columns] = bits
            return to_words(spread)

        state = words(self.result.state[self.part])
        log_weights = np.zeros(len(state))
        carried = np.ones(len(state))
        exact = True
        beta = 0.0
        passed = np.empty((len(state), len(self.legs)))
        for k, leg in enumerate(self.legs):
            frozen = words(np.zeros(len(columns)) if leg.frozen is None else leg.frozen)
            for stretch in self.walk.stretches(leg.betas):
                if stretch.exact != exact:
                    log_weights += self.walk.change(stretch.betas[0], units(), stretch.exact)
                    exact = stretch.exact
                if not self._walk(stretch, state, frozen, log_weights, carried):
                    return
                beta = stretch.betas[-1]
            passed[:, k] = log_weights - np.log(carried)
        if not exact:
            log_weights += self.walk.change(beta, units(), to_exact=True)
            passed[:, -1] = log_weights - np.log(carried)
        if self.stop.is_set():
            return  # an interruption leaves something unfinished, or the caller would not know of it
        self.result.state[self.part] = units()
        self.result.passed[self.part] = passed
        self.result.finished[self.part] = True

    def _walk(
        self,
        stretch: Stretch,
        state: NDArray[np.uint32],
        frozen: NDArray[np.uint32],
        log_weights: Floats,
        carried: Floats,
    ) -> bool:
        """Walk one stretch in calls that are short enough to stop between; False when stopped."""
        packed = self.walk.packed(stretch.exact)
        pairs = int(packed.even.starts[-1] * packed.odd.starts[-1])
        steps = max(16, _CALL_WORK // ((pairs + _STEP_WORK) * len(state)))
        for low in range(0, stretch.betas.size - 1, steps):
            if self.stop.is_set():
                return False
            betas = stretch.betas[low : low + steps + 1]
            _call(packed, betas, frozen, state, self.generators, log_weights, carried)
            self.done[0] += (betas.size - 1) * len(state)
        return True


def _call(
    packed: Packed,
    betas: Floats,
    frozen: NDArray[np.uint32],
    state: NDArray[np.uint32],
    generators: NDArray[np.uint32],
    log_weights: Floats,
    carried: Floats,
) -> None:
    even, odd, real = packed.even, packed.odd, np.empty(0, packed.real)
    run_tile(betas, even, odd, packed.reach, real, frozen, state, generators, log_weights, carried)


def compile_kernels(walk: Walk, progress: Progress | None = None) -> None:
    """Compile (or load from the cache) the kernels this walk needs, and say so: it can take some seconds."""
    progress = progress or _silent
    progress("preparing the kernels (compiled once per machine)", 0.0, 1.0)
    for packed in (walk.exact_packed, walk.rounded_packed):
        if packed is not None:
            state = np.zeros((1, packed.even.real.size), np.uint32)
            generators = np.ones((1, 4, LANES), np.uint32)
            _call(packed, np.ones(1), state[0], state, generators, np.zeros(1), np.ones(1))
    progress("preparing the kernels (compiled once per machine)", 1.0, 1.0)


def _silent(_task: str, _done: float, _total: float) -> None:
    """Say nothing."""
