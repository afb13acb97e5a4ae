"""anneal(): choose a backend, cut chains into tiles, run tiles on threads; Ctrl-C keeps the finished chains."""

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import Empty, PriorityQueue
from threading import Event
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.path import Path
from meltpoint.backends.backend import Backend, PreparedPath, Tile
from meltpoint.backends.numba.graph import GraphBackend
from meltpoint.backends.numba.layered import FusedBackend
from meltpoint.backends.numba.precision import Precision, check_precision
from meltpoint.backends.reference import ReferenceBackend
from meltpoint.errors import Progress
from meltpoint.kernels.announcing import preparing_kernels
from meltpoint.kernels.streams import Streams
from meltpoint.kernels.threads import check_threads
from meltpoint.layers.unit import Bits, Floats
from meltpoint.progress import silent
from meltpoint.records import short_repr

BACKENDS: tuple[Backend, ...] = (FusedBackend(), GraphBackend(), ReferenceBackend())
"""All backends, in the order in which they are asked whether they support a path."""

TILE = 128
_LEAST_TILE = 25  # with fewer chains a step costs more than idle threads do
_PAUSES = 16  # fewest pauses of a tile, if they are not too close together
_TOGETHER = 2  # tiles for each thread that advance at the same time; those of later groups wait
_PROGRESS_SECONDS = 0.1  # seconds between looks at the progress


@dataclass(frozen=True, eq=False, repr=False)
class Annealed:
    """Final states (chain, unit), log weights after each segment (chain, segment), finished chains (chain,).

    `interrupted` says whether Ctrl-C ended the run; chains that were finished by then are as they would have been, and
    the others are where they started.
    """

    state: Bits
    cumulative_log_weights: Floats
    finished: NDArray[np.bool_]
    interrupted: bool = False

    __repr__ = short_repr

    @property
    def log_weights(self) -> Floats:
        """Log weights (chain,) of all segments together."""
        return self.cumulative_log_weights[:, -1]


def prepare_path(path: Path, precision: Precision = "mixed") -> PreparedPath:
    """The path as the first backend that supports it runs it."""
    check_precision(precision)
    backend = next(backend for backend in BACKENDS if backend.supports(path))
    return backend.prepare(path, precision)


def anneal(
    prepared: PreparedPath,
    segments: Sequence[Segment],
    state: Bits,
    streams: Streams,
    *,
    threads: int | None = None,
    tile: int = TILE,
    progress: Progress | None = None,
    task: str = "annealing",
) -> Annealed:
    """Take every chain through the segments, one after the other, and add up its log weight segment by segment.

    `state` (chain, unit of the state) is where the chains start. The result does not depend on threads, tile or the
    order in which chains are run.
    """
    threads = check_threads(threads)
    progress = progress or silent
    n_chains = len(state)
    compile_kernels(prepared, progress, threads)
    steps = sum(segment.steps for segment in segments)
    tiles = _cut(n_chains, threads, tile, prepared.chains_at_once)
    state = np.array(state, prepared.path.dtype)
    cumulative, finished = np.zeros((n_chains, len(segments))), np.zeros(n_chains, np.bool_)
    done = np.zeros(len(tiles), np.int64)  # chain-steps; each tile writes its own entry
    stop = Event()
    waiting: _Waiting = PriorityQueue()
    for k, part in enumerate(tiles):
        job = Tile(state[part], cumulative[part], finished[part], done[k : k + 1], streams.part(part))
        group = -((len(tiles) - 1 - k) // (_TOGETHER * threads))  # the last one is full
        waiting.put((group, 0, k, prepared.advance(job, segments, -(-steps // _PAUSES))))
    with ThreadPoolExecutor(threads) as pool:
        try:
            pending = {pool.submit(_work, waiting, stop) for _ in range(threads)}
            while pending:
                ended, pending = wait(pending, timeout=_PROGRESS_SECONDS, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
                progress(task, float(done.sum()), float(n_chains * steps))
        except BaseException as problem:
            stop.set()
            if not isinstance(problem, KeyboardInterrupt):
                raise
    return Annealed(state, cumulative, finished, interrupted=stop.is_set())


def compile_kernels(prepared: PreparedPath, progress: Progress | None = None, processes: int = 1) -> None:
    """Load the kernels a prepared path needs, or compile them, and say so: it can take some seconds."""
    with preparing_kernels(progress or silent):
        prepared.compile(processes)


_Waiting: TypeAlias = "PriorityQueue[tuple[int, int, int, Iterator[None]]]"
"""Tiles that are paused: their groups, pauses made, numbers, and what is left of them."""


def _cut(n_chains: int, threads: int, tile: int, at_once: int = 1) -> list[slice]:
    """As many tiles for each thread, and one more, so that a fast thread can help a slow one at the end.

    Tiles end at multiples of `at_once` chains, but for the last one.
    """
    n_tiles = threads * -(-n_chains // (threads * tile))
    n_tiles += threads > 1 and n_chains >= _LEAST_TILE * (n_tiles + 1)
    edges = np.linspace(0, n_chains, min(n_tiles, n_chains) + 1).astype(int)
    inner = np.rint(edges[1:-1] / at_once).astype(int) * at_once
    edges = np.unique([0, *inner[inner < n_chains].tolist(), n_chains])
    return [slice(low, high) for low, high in itertools.pairwise(edges.tolist())]


def _work(waiting: _Waiting, stop: Event) -> None:
    """What a thread does: always advance the tile that is most behind in its group."""
    while not stop.is_set():
        try:
            group, pauses, number, rest = waiting.get_nowait()
        except Empty:
            return  # each remaining tile is being run by another thread
        for _ in rest:
            waiting.put((group, pauses + 1, number, rest))
            break
