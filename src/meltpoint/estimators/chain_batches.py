"""Chains as batches: a path from a base to a model, and chains along it that the scheduler cuts and runs."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.path import Path
from meltpoint.backends.backend import PreparedPath
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.registry import prepare_path
from meltpoint.backends.tiles import Annealed, anneal, compile_kernels
from meltpoint.errors import Progress
from meltpoint.fingerprint import fingerprint
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats, States
from meltpoint.randomness import Purpose
from meltpoint.runs.batch import Batch, Items

_FEW_STEPS = 20  # fewer are made sooner than they are sent or written


@dataclass(frozen=True, eq=False)
class Annealing:
    """Annealing between a base and a model: the path, laid out once where its chains are run."""

    model: Any  # with a path(base)
    base: Base
    precision: Precision = "mixed"

    def __getstate__(self) -> dict[str, Any]:
        # A worker lays out its own path: compiled code does not travel.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def path(self) -> Path:
        return self.model.path(self.base)

    @cached_property
    def prepared(self) -> PreparedPath:
        """The path as a backend runs it."""
        return prepare_path(self.path, self.precision)

    @property
    def log_z_base(self) -> float:
        """Log normaliser of the base, and the constant that the path leaves out."""
        return self.path.log_z_base + self.path.log_constant

    def digest(self, betas: Floats) -> str:
        """A short text that differs when the intermediate distributions do."""
        undirected, base = self.model.undirected, self.base
        biases = undirected.with_biases(base) if isinstance(base, Base) else ()
        arrays = {"betas": betas, **{str(k): bias for k, bias in enumerate(biases)}}
        name = () if biases else (base.name,)
        return fingerprint(arrays, undirected.fingerprint(), self.precision, *name)

    def anywhere(self, chains: int) -> States:
        """States (chain, unit) for chains that begin at beta 0, where the first sweep draws from the base exactly."""
        return np.zeros((chains, self.path.n_state), self.path.dtype)


@dataclass(frozen=True, eq=False)
class PathWork:
    """What chains along one path share, for a batch."""

    annealing: Annealing

    def prepare(self, progress: Progress | None) -> None:
        """Lay the path out, and load the kernels."""
        compile_kernels(self.annealing.prepared, progress)


@dataclass(frozen=True, eq=False)
class Chains(PathWork):
    """Chains that start at `state` (chain, unit of the state) and go through segments.

    Their random numbers are named by the seed, the purpose and their keys (chain,) or (chain, number).
    """

    segments: tuple[Segment, ...]
    state: States
    seed: int
    purpose: int
    keys: NDArray[np.integer]

    def compute(self, items: Items, progress: Progress) -> Annealed:
        """What became of some of them."""
        streams = Streams(self.seed, Purpose(self.purpose), self.keys[items])
        return anneal(self.annealing.prepared, self.segments, self.state[items], streams, progress=progress)


def chain_keys(*numbers: int | NDArray[np.integer]) -> NDArray[np.integer]:
    """Keys (chain, number) of the streams of chains, from numbers of their own (chain,) and numbers that all share."""
    return np.stack(np.broadcast_arrays(*numbers), axis=1)


def chains_batch(
    name: str, annealing: Annealing, segments: Sequence[Segment], state: States | int, streams: Streams
) -> Batch[Annealed]:
    """A batch of chains from these states, or from so many exact draws of the base; `name` tells it apart."""
    state = annealing.anywhere(state) if isinstance(state, int) else state
    work = Chains(annealing, tuple(segments), state, streams.seed, int(streams.purpose), streams.keys)
    steps = sum(segment.steps for segment in segments)
    return Batch(name, work, len(state), float(steps), short=steps < _FEW_STEPS)
