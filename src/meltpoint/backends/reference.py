"""The backend that runs any path with the plain loop in NumPy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meltpoint.annealing.blocks import Segment, StreamDraws
from meltpoint.annealing.path import Path, anneal_reference
from meltpoint.backends.backend import Tile


@dataclass(frozen=True, eq=False)
class ReferencePath:
    """Any path, as it is: the reference has nothing to prepare."""

    path: Path

    def compile(self) -> None:
        """Nothing to compile."""

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        draws = StreamDraws(tile.streams.generators(), in_rows=self.path.draws_in_rows)
        state, log_weights = tile.state, np.zeros(len(tile.state))
        cumulative = np.empty_like(tile.cumulative_log_weights)
        for k, segment in enumerate(segments):
            for low in range(0, segment.steps, steps):
                part = Segment(segment.betas[low : low + steps + 1], segment.clamped, segment.reversed_sweeps)
                state, gained = anneal_reference(self.path, part, state, draws)
                log_weights = log_weights + gained
                tile.count(part.steps)
                yield
            cumulative[:, k] = log_weights
        tile.finish(state, cumulative)


class ReferenceBackend:
    """Runs any path in float64, whatever precision is asked for."""

    name = "reference"

    def supports(self, path: Path) -> bool:
        return True

    def prepare(self, path: Path, precision: str) -> ReferencePath:
        return ReferencePath(path)
