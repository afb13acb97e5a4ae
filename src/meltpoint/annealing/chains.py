"""Chains that are to be run, and who runs them: threads of this process, or whoever else there is for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.loop import Annealed, anneal
from meltpoint.annealing.path import Path
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.numba.precision import Precision
from meltpoint.errors import Progress
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Bits


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains that start at `state` (chain, unit of the state) and go through the segments of a path.

    `name` tells them apart from others that the same annealer runs. `prepare` gives the path as a backend runs it with
    this precision, where it is needed: in this process it may not be.
    """

    name: str
    path: Path
    precision: Precision
    segments: Sequence[Segment]
    state: Bits
    streams: Streams
    prepare: Callable[[], PreparedPath]

    @property
    def steps(self) -> int:
        """Steps of a chain through all segments."""
        return sum(segment.steps for segment in self.segments)


class Annealer(Protocol):
    """Runs chains. Whoever does it, the results are the same to the last bit."""

    def __call__(self, asked: Sequence[Chains], progress: Progress | None, task: str) -> list[Annealed]:
        """What became of the chains, all of them finished; KeyboardInterrupt if Ctrl-C came before.

        What is asked for together does not depend on each other. Progress counts the chain-steps of all of them.
        """
        ...


@dataclass(frozen=True)
class Threads:
    """Runs chains on so many threads of this process, all cores by default, and keeps nothing."""

    threads: int | None = None

    def __call__(self, asked: Sequence[Chains], progress: Progress | None, task: str) -> list[Annealed]:
        """What became of the chains, all of them finished."""
        found, done = [], 0.0
        for chains in asked:
            run = anneal_counted(chains, self.threads, progress, task, done, chain_steps(asked))
            if run.interrupted:
                raise KeyboardInterrupt
            found.append(run)
            done += len(chains.state) * chains.steps
        return found


def chain_steps(asked: Sequence[Chains]) -> float:
    """Chain-steps of them all."""
    return float(sum(len(chains.state) * chains.steps for chains in asked))


def anneal_counted(
    chains: Chains, threads: int | None, progress: Progress | None, task: str, done: float, total: float
) -> Annealed:
    """Run chains on threads of this process; progress counts from `done` chain-steps on, of a total."""

    def counted(name: str, here: float, own_total: float) -> None:
        if progress is not None:
            # What is not the annealing itself is the preparation of kernels, with a count of its own.
            progress(name, *((done + here, total) if name == task else (here, own_total)))

    return anneal(
        chains.prepare(),
        chains.segments,
        chains.state,
        chains.streams,
        threads=threads,
        progress=counted,
        task=task,
    )
