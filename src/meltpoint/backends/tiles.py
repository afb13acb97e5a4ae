"""anneal(): take chains through the betas on the caller's thread, tile by tile."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from meltpoint.annealing.blocks import Segment
from meltpoint.backends.backend import PreparedPath, Tile
from meltpoint.errors import Progress
from meltpoint.kernels.compiling import preparing_kernels
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats, States
from meltpoint.progress import silent
from meltpoint.records import short_repr

TILE = 128
_PAUSES = 16  # fewest reports of progress for a tile, if they are not too close together


@dataclass(frozen=True, eq=False, repr=False)
class Annealed:
    """Final states (chain, unit), and log weights after each segment (chain, segment)."""

    state: Annotated[States, "chain", "unit"]
    cumulative_log_weights: Annotated[Floats, "chain", "segment"]

    __repr__ = short_repr

    @property
    def log_weights(self) -> Floats:
        """Log weights (chain,) of all segments together."""
        return self.cumulative_log_weights[:, -1]


def anneal(
    prepared: PreparedPath,
    segments: Sequence[Segment],
    state: States,
    streams: Streams,
    *,
    tile: int = TILE,
    progress: Progress | None = None,
    task: str = "annealing",
) -> Annealed:
    """Take every chain through the segments, one after the other, and add up its log weight segment by segment.

    `state` (chain, unit of the state) is where the chains start. The result does not depend on which chains are run
    together. It runs on one thread: `runs.scheduler` cuts chains for several. An error that `progress` raises ends it.
    """
    progress = progress or silent
    n_chains, steps = len(state), sum(segment.steps for segment in segments)
    state = np.array(state, prepared.path.dtype)
    cumulative = np.zeros((n_chains, len(segments)))
    done = np.zeros(1, np.int64)  # chain-steps
    for low in range(0, n_chains, tile):
        part = slice(low, low + tile)
        job = Tile(state[part], cumulative[part], done, streams.part(part))
        for _ in prepared.advance(job, segments, -(-steps // _PAUSES)):
            progress(task, float(done[0]), float(n_chains * steps))
    progress(task, float(done[0]), float(n_chains * steps))
    return Annealed(state, cumulative)


def compile_kernels(prepared: PreparedPath, progress: Progress | None = None) -> None:
    """Load the kernels a prepared path needs, or compile them, and say so: it can take some seconds."""
    with preparing_kernels(progress or silent):
        prepared.compile()
