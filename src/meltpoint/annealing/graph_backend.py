"""The backend of graphs: sites of one number of states, coupled in pairs, in as many blocks as they need.

Kernels work with whole numbers of steps: the path they run leads to a model whose fields and couplings are rounded to
multiples of a scale, about 2**-23 of the largest input (2**-51 in float64). Where a segment begins and where it ends
the weight takes the factor between the exact and the rounded path, so that no rounding is left in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.backend import Tile
from meltpoint.annealing.kernels.bit_graph import BitGraph, log_f_at, run_bits, state_energy
from meltpoint.annealing.kernels.chains import group_generators, pack_bits, unpack_bits
from meltpoint.annealing.kernels.graph_packing import bits_of_base, pack_bit_graph
from meltpoint.annealing.path import AnnealingPath
from meltpoint.annealing.precision import Precision, check_precision
from meltpoint.annealing.streams import LANES
from meltpoint.models.blocks import Segment
from meltpoint.units.bernoulli import softplus
from meltpoint.units.unit import Floats

_CALL_WORK = 200_000_000  # site updates per kernel call: a fraction of a second
_LEAST_WORK = 4_000_000  # some milliseconds: what surrounds a call must not be felt


class GraphBackend:
    """Runs paths to graphs of pairwise couplings."""

    name = "graph"

    def supports(self, path: AnnealingPath) -> bool:
        """Whether it can run a path: if its target is a graph of pairs."""
        return path.target.pairwise is not None and path.target.pairwise.fields.ndim == 1

    def prepare(self, path: AnnealingPath, precision: Precision) -> "BitGraphPath":
        """Lay a path out for the kernels."""
        check_precision(precision)
        graph = path.target.pairwise
        assert graph is not None
        base = bits_of_base(path)
        exact = pack_bit_graph(graph, base, np.float64)
        rounded = pack_bit_graph(graph, base, np.int64 if precision == "float64" else np.int32)
        return BitGraphPath(path, exact, rounded, _constant(path, exact))


def _constant(path: AnnealingPath, exact: BitGraph) -> float:
    """What log f_1 - log f_0 has beyond the sum over bits, in any state."""
    n = exact.blocks[0]
    base, inputs = exact.base[:n], exact.base[:n] + exact.fields[:n]
    of_bits = float((softplus(inputs) - softplus(base)).sum())
    zeros = np.zeros((1, path.target.n_state), path.target.dtype)
    return float(path.log_f(1.0, zeros)[0] - path.log_f(0.0, zeros)[0]) - of_bits


@dataclass(frozen=True, eq=False)
class BitGraphPath:
    """A path to a graph of sites with two states, exact and as the kernels run it."""

    path: AnnealingPath
    exact: BitGraph
    rounded: BitGraph
    constant: float

    def compile(self) -> None:
        """Run each kernel once, on nothing."""
        self._start(np.zeros((0, self.path.target.n_state), np.uint8), np.ones((0, 4, LANES), np.uint32)).run(
            Segment(np.ones(1)), np.ones(1)
        )

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        """Take the tile's chains through the segments; pause for other tiles after about so many steps."""
        chains = self._start(tile.state, tile.streams.generators())
        cumulative = np.empty_like(tile.cumulative_log_weights)
        work = chains.words.size * LANES
        steps = max(1, min(max(steps, _LEAST_WORK // work), _CALL_WORK // work))
        for k, segment in enumerate(segments):
            chains.change(segment.betas[0], to_exact=False)
            for low in range(0, segment.steps, steps):
                betas = segment.betas[low : low + steps + 1]
                chains.run(segment, betas)
                tile.count(betas.size - 1)
                yield
            chains.change(segment.betas[-1], to_exact=True)
            chains.log_weights[:] += (segment.betas[-1] - segment.betas[0]) * self.constant
            cumulative[:, k] = chains.log_weights.reshape(-1)[: len(tile.state)]
        state = np.empty_like(tile.state)
        unpack_bits(chains.words, state)
        tile.finish(state, cumulative)

    def _start(self, state: NDArray[np.uint8], generators: NDArray[np.uint32]) -> "_Chains":
        words = pack_bits(state, self.rounded.sites.size)
        energy = state_energy(self.rounded, words)
        return _Chains(self, words, group_generators(generators), energy, np.zeros(energy.shape))


@dataclass(eq=False)
class _Chains:
    """What the kernels change in place, groups of chains first."""

    path: BitGraphPath
    words: NDArray[np.uint32]  # (group, site)
    generators: NDArray[np.uint32]
    energy: NDArray[np.int64]  # (group, chain)
    log_weights: Floats  # (group, chain)
    positions_drawn: int = 0

    def change(self, beta: float, to_exact: bool) -> None:
        """Change between the exact and the rounded path where the chains are."""
        if beta == 0:  # where couplings count for nothing
            return
        exact, rounded = (log_f_at(beta, graph, self.words) for graph in (self.path.exact, self.path.rounded))
        self.log_weights[:] += exact - rounded if to_exact else rounded - exact

    def run(self, segment: Segment, betas: Floats) -> None:
        """Take the chains through some of a segment's betas."""
        graph, n = self.path.rounded, self.words.shape[1]
        clamped = np.zeros(n, np.uint8)
        if segment.clamped is not None:
            clamped[: segment.clamped.size] = segment.clamped
        run_bits(
            np.ascontiguousarray(betas),
            graph,
            segment.reversed_sweeps,
            clamped,
            self.words,
            self.generators,
            self.positions_drawn % LANES,
            self.energy,
            self.log_weights,
        )
        self.positions_drawn += (betas.size - 1) * graph.sites.size
