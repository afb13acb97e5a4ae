"""The loop's front: chains in tiles, tiles on threads, progress, and an interruption that keeps what is done."""

import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import Empty, PriorityQueue
from threading import Event
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.family import Family
from meltpoint.annealing.kernels.blocks import to_bits, to_words
from meltpoint.annealing.kernels.packing import Packed, spread, without_padding
from meltpoint.annealing.kernels.tile import run_tile
from meltpoint.annealing.precision import Precision, Stretch, Walk, prepare
from meltpoint.annealing.streams import LANES
from meltpoint.errors import InputError, Progress
from meltpoint.models.checks import Bits, Floats

TILE = 128
_LEAST_TILE = 25  # fewer chains make a step dearer than idle threads do
_CALL_WORK = 4_000_000_000  # unit pairs per kernel call: a fraction of a second
_LEAST_WORK = 400_000_000  # some milliseconds: what surrounds a call must not be felt
_TURNS = 16  # that a tile takes at least, if they are not too short
_WAVE = 2  # tiles for each thread that are under way at the same time; those of later waves wait
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
    tiles = _cut(n_chains, threads, tile)
    sizes = walk.exact_packed.even.sizes
    words = to_words(spread(state, sizes))
    route = [_Way.along(leg, walk) for leg in legs]
    passed, ended = np.zeros((n_chains, len(legs))), np.zeros(n_chains, np.bool_)
    done = np.zeros(len(tiles), np.int64)  # chain-steps; each tile writes its own entry
    stop = Event()
    waiting: _Waiting = PriorityQueue()
    for k, part in enumerate(tiles):
        own = generators[part].copy()
        job = _Tile(walk, route, words[part], own, passed[part], ended[part], done[k : k + 1])
        wave = -((len(tiles) - 1 - k) // (_WAVE * threads))  # the last one is full
        waiting.put((wave, 0, k, job.turns(-(-steps // _TURNS))))
    with ThreadPoolExecutor(threads) as pool:
        try:
            pending = {pool.submit(_work, waiting, stop) for _ in range(threads)}
            while pending:
                finished, pending = wait(pending, timeout=_PATIENCE, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()
                progress(task, float(done.sum()), float(n_chains * steps))
        except BaseException as problem:
            stop.set()
            if not isinstance(problem, KeyboardInterrupt):
                raise
    if stop.is_set() and ended.all():
        ended[tiles[-1]] = False  # or the caller would not know of the interruption
    units = np.where(ended[:, np.newaxis], without_padding(to_bits(words), sizes), state)
    return Annealed(units, passed, ended)


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
class _Way:
    """A leg as the kernels walk it: its stretches, and the frozen units as words (block,)."""

    stretches: list[Stretch]
    frozen: NDArray[np.uint32]

    @classmethod
    def along(cls, leg: Leg, walk: Walk) -> "_Way":
        sizes = walk.exact_packed.even.sizes
        frozen = np.zeros(sizes.sum(), np.bool_) if leg.frozen is None else leg.frozen
        return cls(walk.stretches(leg.betas), to_words(spread(frozen, sizes)))


@dataclass(frozen=True)
class _Tile:
    """Some of the chains, on their way through all legs on one thread; they write to their parts of all results."""

    walk: Walk
    route: list[_Way]
    state: NDArray[np.uint32]  # (chain, block)
    generators: NDArray[np.uint32]
    passed: Floats
    ended: NDArray[np.bool_]
    done: NDArray[np.int64]

    def turns(self, steps: int) -> Iterator[None]:
        """Walk the route, and pause for other tiles after every turn of about so many steps."""
        log_weights = np.zeros(len(self.state))
        carried = np.ones(len(self.state))
        exact = True
        beta = 0.0
        passed = np.empty_like(self.passed)
        for k, way in enumerate(self.route):
            for stretch in way.stretches:
                if stretch.exact != exact:
                    log_weights += self._change(stretch.betas[0], stretch.exact)
                    exact = stretch.exact
                yield from self._walk(stretch, way.frozen, log_weights, carried, steps)
                beta = stretch.betas[-1]
            # A leg ends in the family in which the next one begins, the last one in the exact family.
            following = self.route[k + 1].stretches[0].exact if k + 1 < len(self.route) else True
            if following != exact:
                log_weights += self._change(beta, following)
                exact = following
            passed[:, k] = log_weights - np.log(carried)
        self.passed[:] = passed
        self.ended[:] = True

    def _change(self, beta: float, to_exact: bool) -> Floats:
        """Log weights (chain,) of changing between the families where the chains are."""
        if beta == 0:  # where weights count for nothing
            return np.zeros(len(self.state))
        units = without_padding(to_bits(self.state), self.walk.exact_packed.even.sizes)
        return self.walk.change(beta, units, to_exact)

    def _walk(
        self,
        stretch: Stretch,
        frozen: NDArray[np.uint32],
        log_weights: Floats,
        carried: Floats,
        steps: int,
    ) -> Iterator[None]:
        """Walk one stretch in calls that are short enough to stop between, and long enough to be worth it."""
        packed = self.walk.packed(stretch.exact)
        pairs = int(packed.even.starts[-1] * packed.odd.starts[-1])
        work = (pairs + _STEP_WORK) * len(self.state)
        steps = max(16, min(max(steps, _LEAST_WORK // work), _CALL_WORK // work))
        for low in range(0, stretch.betas.size - 1, steps):
            betas = stretch.betas[low : low + steps + 1]
            _call(packed, betas, frozen, self.state, self.generators, log_weights, carried)
            self.done[0] += (betas.size - 1) * len(self.state)
            yield


_Waiting: TypeAlias = "PriorityQueue[tuple[int, int, int, Iterator[None]]]"
"""Tiles that have a turn to take: their waves, turns taken, numbers, and the turns to come."""


def _cut(n_chains: int, threads: int, tile: int) -> list[slice]:
    """As many tiles for each thread, and one more, so that a fast thread can help a slow one at the end."""
    n_tiles = threads * -(-n_chains // (threads * tile))
    n_tiles += threads > 1 and n_chains >= _LEAST_TILE * (n_tiles + 1)
    edges = np.linspace(0, n_chains, min(n_tiles, n_chains) + 1).astype(int)
    return [slice(low, high) for low, high in itertools.pairwise(edges)]


def _work(waiting: _Waiting, stop: Event) -> None:
    """What a thread does: turn after turn, always of the tile that is most behind in its wave."""
    while not stop.is_set():
        try:
            wave, taken, number, turns = waiting.get_nowait()
        except Empty:
            return  # each tile that is left is in the hands of another thread
        for _ in turns:
            waiting.put((wave, taken + 1, number, turns))
            break


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
    walk.change(1.0, np.zeros((1, walk.exact.target.n_even), np.uint8), to_exact=True)
    progress("preparing the kernels (compiled once per machine)", 1.0, 1.0)


def _silent(_task: str, _done: float, _total: float) -> None:
    """Say nothing."""
