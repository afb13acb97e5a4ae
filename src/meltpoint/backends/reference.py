"""The annealing loop in plain NumPy, for any path and transition: to read, and to test other backends against.

for i = 0 … K-1:
move the state at s_i                          # its reversal when melting; clamped units keep their value
log_w += log f_{s_i+1}(state) - log f_{s_i}(state)
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.draws import Draws
from meltpoint.annealing.path import Path
from meltpoint.backends.backend import Tile
from meltpoint.layers.unit import Bits, Floats


def anneal_reference(path: Path, segment: Segment, state: Bits, draws: Draws) -> tuple[Bits, Floats]:
    """Final states (chain, unit of the state) and log weights (chain,) of one segment, in float64."""
    transition = path.transition.reversed() if segment.reversed_sweeps else path.transition
    log_weights = np.zeros(len(state))
    for s, following in itertools.pairwise(segment.betas):
        if s == 0:  # whatever the transition is, chains start at exact draws
            state = path.draw_base(state, draws, segment.clamped)
        else:
            state = transition.move(path, s, state, draws, segment.clamped)
        log_weights += path.log_f(following, state) - path.log_f(s, state)
    return state, log_weights


@dataclass(frozen=True, eq=False)
class ReferencePath:
    """Any path, as it is: the reference has nothing to prepare."""

    path: Path

    @property
    def chains_at_once(self) -> int:
        """Chains are run one beside the other."""
        return 1

    def compile(self, processes: int = 1) -> None:
        """Nothing to compile."""

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        """Take the tile's chains through the segments, and pause after every so many steps."""
        draws = Draws(tile.streams.generators(), in_rows=self.path.draws_in_rows)
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
        """Whether it can run a path: any."""
        return True

    def prepare(self, path: Path, precision: str) -> ReferencePath:
        """The path itself."""
        return ReferencePath(path)
