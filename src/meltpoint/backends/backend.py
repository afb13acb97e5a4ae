"""The interface of a backend, which says which paths it supports, prepares them, and advances tiles of chains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.path import Path
from meltpoint.backends.numba.precision import Precision
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats, States
from meltpoint.randomness import Purpose


@dataclass(frozen=True, eq=False)
class Tile:
    """Chains that one thread runs together: views of their parts of all results, and their streams."""

    state: States  # where the chains start; where they ended once they have finished
    cumulative_log_weights: Floats  # (chain, segment)
    done: NDArray[np.int64]  # (1,): chain-steps
    streams: Streams

    def count(self, steps: int) -> None:
        """Add steps that all chains of the tile have made."""
        self.done[0] += steps * len(self.state)

    def finish(self, state: States, cumulative_log_weights: Floats) -> None:
        """Write the results; until then nothing is changed."""
        self.state[:] = state
        self.cumulative_log_weights[:] = cumulative_log_weights


class PreparedPath(Protocol):
    """A path as a backend runs it, made once and used for any number of runs."""

    @property
    def path(self) -> Path:
        """The path."""
        ...

    def compile(self) -> None:
        """Compile what it needs, or load it from a cache."""
        ...

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        """Take the tile's chains through the segments; pause for progress and Ctrl-C after about `steps` steps."""
        ...


class Backend(Protocol):
    """Runs the annealing loop."""

    name: str

    def supports(self, path: Path) -> bool:
        """Whether it can run a path."""
        ...

    def prepare(self, path: Any, precision: Precision) -> PreparedPath:  # noqa: ANN401
        """A path that it supports, as it runs it."""
        ...


_RUN: WeakSet[PreparedPath] = WeakSet()


def run_without_chains(prepared: PreparedPath) -> None:
    """Run what chains run below the model, at it and between both, on no chains: that compiles it, or loads it."""
    if prepared in _RUN:
        return
    path, chains = prepared.path, np.zeros(0, np.int64)
    state = np.zeros((0, path.n_state), path.dtype)
    tile = Tile(state, np.zeros((0, 1)), np.zeros(1, np.int64), Streams(0, Purpose.AIS, chains))
    for _ in prepared.advance(tile, [Segment(np.array([0.5, 1.0, 1.0]))], 1):
        pass
    _RUN.add(prepared)
