"""The annealing loop in plain NumPy, for any Markov random field: to read, and to test other backends against.

    for i = 0 … K-1:
        sweep state at s_i                             # block after block; clamped units keep their value
        log_w += log f_{s_i+1}(state) - log f_{s_i}(state)

Chains go up with forward sweeps and come down with reversed ones. A sweep with one block and one block summed out
is its own reversal. The reversal of any other draws the blocks of the state in the opposite order, again after the
block that is summed out: p(s | x) T(x → y | s) has the reversal p(s | y) T~(y → x | s).
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.path import AnnealingPath
from meltpoint.backends.backend import Tile
from meltpoint.kernels.streams import LANES, next_uniforms
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.blocks import Segment, Sweep, UnitBlock

Draw: TypeAlias = Callable[[UnitBlock, Floats], Bits]
"""Draws the units of a block (chain, unit) that have these inputs (chain, unit, *input_shape)."""


def anneal_reference(path: AnnealingPath, segment: Segment, state: Bits, draw: Draw) -> tuple[Bits, Floats]:
    """Final states (chain, unit of the state) and log weights (chain,) of one segment, in float64."""
    sweep = path.target.sweep.reversed() if segment.reversed_sweeps else path.target.sweep
    log_weights = np.zeros(len(state))
    for beta, following in itertools.pairwise(segment.betas):
        state = sweep_once(path, beta, state, draw, sweep, segment.clamped)
        log_weights += path.log_f(following, state) - path.log_f(beta, state)
    return state, log_weights


def sweep_once(
    path: AnnealingPath,
    beta: float,
    state: Bits,
    draw: Draw,
    sweep: Sweep,
    clamped: NDArray[np.bool_] | None = None,
) -> Bits:
    """The states after one sweep at beta."""
    target = path.target
    units = target.with_summed_out(state).copy()
    if target.summed_out is not None:
        inputs = path.inputs(beta, len(target.state_blocks), units)
        units[:, target.summed_out.columns] = draw(target.summed_out, inputs)
    for k in sweep.order:
        block = target.state_blocks[k]
        drawn = draw(block, path.inputs(beta, k, units))
        if clamped is not None:
            drawn = np.where(clamped[block.columns], units[:, block.columns], drawn)
        units[:, block.columns] = drawn
    return units[:, : target.n_state]


def drawing(
    generators: NDArray[np.uint32], dtype: type[np.floating] = np.float64, *, in_rows: bool = True
) -> Draw:
    """Draws with the chains' own generators (chain, 4, LANES), which it advances.

    With `in_rows` every layer begins a new row of LANES uniforms, whole vectors of units being drawn together. Without,
    units take one uniform after the other: a block may be a single site.
    """
    left = np.empty((len(generators), 0), dtype)

    def draw(block: UnitBlock, inputs: Floats) -> Bits:
        nonlocal left
        if in_rows:
            uniforms = [next_uniforms(generators, size, dtype) for size in block.layer_sizes]
            return block.unit.draw(inputs, np.concatenate(uniforms, axis=1))
        rows = -(-max(0, block.size - left.shape[1]) // LANES)
        left = np.concatenate([left, next_uniforms(generators, rows * LANES, dtype)], axis=1)
        taken, left = left[:, : block.size], left[:, block.size :]
        return block.unit.draw(inputs, taken)

    return draw


@dataclass(frozen=True, eq=False)
class ReferencePath:
    """Any path, as it is: the reference has nothing to prepare."""

    path: AnnealingPath

    @property
    def chains_at_once(self) -> int:
        """Chains are run one beside the other."""
        return 1

    def compile(self, processes: int = 1) -> None:
        """Nothing to compile."""

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        """Take the tile's chains through the segments, and pause after every so many steps."""
        draw = drawing(tile.streams.generators(), in_rows=self.path.target.draws_in_rows)
        state, log_weights = tile.state, np.zeros(len(tile.state))
        cumulative = np.empty_like(tile.cumulative_log_weights)
        for k, segment in enumerate(segments):
            for low in range(0, segment.steps, steps):
                part = Segment(segment.betas[low : low + steps + 1], segment.clamped, segment.reversed_sweeps)
                state, gained = anneal_reference(self.path, part, state, draw)
                log_weights = log_weights + gained
                tile.count(part.steps)
                yield
            cumulative[:, k] = log_weights
        tile.finish(state, cumulative)


class ReferenceBackend:
    """Runs any path in float64, whatever precision is asked for."""

    name = "reference"

    def supports(self, path: AnnealingPath) -> bool:
        """Whether it can run a path: any."""
        return True

    def prepare(self, path: AnnealingPath, precision: str) -> ReferencePath:
        """The path itself."""
        return ReferencePath(path)
