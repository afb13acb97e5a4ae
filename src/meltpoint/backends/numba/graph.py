"""The backend of graphs: sites with a few states each, coupled by pairs or by larger factors, in any number of blocks.

Kernels work with whole numbers of steps: the path they run leads to a model whose fields and couplings are rounded to
multiples of a scale. Steps are 2**-23 of the largest input (2**-51 in float64), and between the ends of the path 2**-15
where tables would otherwise leave the cache. Wherever the chains change to other steps, and at both ends of every
segment, the weight takes the factor between the two paths at that beta, in float64: no rounding is left in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.annealing.path import BlockGibbs, Path
from meltpoint.backends.backend import Tile, run_without_chains
from meltpoint.backends.numba.kernels.bit_graph import (
    BitGraph,
    log_f_at,
    pack_bit_graph,
    rounding_gap,
    run_bits,
    state_energy,
)
from meltpoint.backends.numba.kernels.chains import (
    CHAINS,
    group_generators,
    n_groups,
    pack_bits,
    unpack_bits,
)
from meltpoint.backends.numba.kernels.table_graph import (
    TableGraph,
    factor_energy,
    run_tables,
    summed_out_log_f,
)
from meltpoint.backends.numba.kernels.table_packing import Incidences, incidences
from meltpoint.backends.numba.precision import (
    TOLERATED_VARIANCE,
    Precision,
    PrecisionSpan,
    cut_at_model,
)
from meltpoint.kernels.streams import LANES
from meltpoint.layers.unit import Floats, States
from meltpoint.models.graph_fields import FactorField, PairField

_CALL_WORK = 200_000_000  # updates of sites with two neighbours per kernel call: a fraction of a second
_LEAST_WORK = 4_000_000  # some milliseconds: what surrounds a call must not be felt
_MOST_STATES = 256  # of which a byte holds one

Graph: TypeAlias = BitGraph | TableGraph
"""A graph with whole numbers of one step."""


class GraphBackend:
    """Runs paths to graphs."""

    name = "graph"

    def supports(self, path: Path) -> bool:
        """Block Gibbs sweeps to a graph of pairs of bits, or of factors with few states for each site."""
        if type(path) is not BlockPath or not isinstance(path.transition, BlockGibbs):
            return False
        graph = path.target.graph
        if isinstance(graph, FactorField):
            return graph.cardinalities.max() <= _MOST_STATES
        return isinstance(graph, PairField)

    def prepare(self, path: BlockPath, precision: Precision) -> "GraphPath":
        graph = path.target.graph
        whole = np.dtype(np.int64 if precision == "float64" else np.int32)
        if isinstance(graph, PairField):
            exact, fine = (pack_bit_graph(graph, path, dtype) for dtype in (np.float64, whole))
            return GraphPath(path, BitChains, exact, fine, None, fine.sites.size + fine.neighbours.size // 4)
        factors = incidences(graph, path)
        fine = factors.packed(whole)
        short = np.dtype(np.int16)
        fits = precision == "mixed" and factors.rounding_variance(factors.scale(short)) <= TOLERATED_VARIANCE
        coarse = factors.packed(short) if fits else None
        # Vectors that are added, and some for a draw.
        work = 4 * max(1, fine.base.shape[1] // 16) * (16 * fine.sites.size + fine.at.size)
        return GraphPath(path, TableChains, factors, fine, coarse, work)


@dataclass(frozen=True, eq=False)
class GraphPath:
    """A path in the kernels' layout: as it is, and in whole steps."""

    path: BlockPath
    chains: "type[BitChains | TableChains]"
    exact: Any
    fine: Graph
    """For moves at beta 1, and everywhere if there is no other."""
    coarse: Graph | None
    work: int
    """What a sweep of one chain costs, in updates of sites with two neighbours."""

    def compile(self) -> None:
        run_without_chains(self)

    @cached_property
    def constant(self) -> float:
        """What log f_1 - log f_0 has beyond the sum over sites and factors, in any state."""
        zeros = np.zeros((1, self.path.target.n_state), self.path.target.dtype)
        chains = self.chains(self, zeros, np.zeros((1, 4, LANES), np.uint32))
        found = chains.log_f(1.0).flat[0] - chains.log_f(0.0).flat[0]
        return float(self.path.log_f(1.0, zeros)[0] - self.path.log_f(0.0, zeros)[0] - found)

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        n_chains = len(tile.state)
        chains = self.chains(self, tile.state, tile.streams.generators())
        work = self.work * CHAINS * max(1, n_groups(n_chains))
        steps = max(1, min(max(steps, _LEAST_WORK // work), _CALL_WORK // work))
        cumulative = np.empty_like(tile.cumulative_log_weights)
        current = None
        for k, segment in enumerate(segments):
            whole = [PrecisionSpan(segment.betas, True)]
            for span in whole if self.coarse is None else cut_at_model(segment.betas):
                graph = self.fine if span.exact or self.coarse is None else self.coarse
                chains.change(span.betas[0], current, graph)
                current = graph
                for low in range(0, span.betas.size - 1, steps):
                    betas = np.ascontiguousarray(span.betas[low : low + steps + 1])
                    chains.run(graph, segment, betas)
                    tile.count(betas.size - 1)
                    yield
            chains.change(segment.betas[-1], current, None)
            current = None
            chains.log_weights += (segment.betas[-1] - segment.betas[0]) * self.constant
            cumulative[:, k] = chains.log_weights.flat[:n_chains]
        tile.finish(chains.state(), cumulative)


class _Chains:
    """A tile's chains; arrays are changed in place by the kernels."""

    kernel: Any
    sites: NDArray[Any]
    energy: NDArray[np.int64]

    def __init__(self, prepared: GraphPath, generators: NDArray[np.uint32]) -> None:
        self.exact, self.n_sites = prepared.exact, prepared.fine.sites.size
        self.generators = group_generators(generators)
        self.drawn = 0  # positions, whose generators take turns

    def run(self, graph: Graph, segment: Segment, betas: Floats) -> None:
        """Take the chains through some of a segment's betas."""
        clamped = np.zeros(self.n_sites, np.uint8)
        if segment.clamped is not None:
            clamped[: segment.clamped.size] = segment.clamped
        self.kernel(
            betas, graph, segment.reversed_sweeps, clamped, self.sites, self.generators, self.drawn % LANES,
            self.energy, self.log_weights,
        )  # fmt: skip
        self.drawn += (betas.size - 1) * self.n_sites

    def rounding_gap(self, beta: float, graph: Graph) -> Floats:
        """Exact log f_beta (…, chain) where the chains are, less that of a rounded graph."""
        raise NotImplementedError

    def enter(self, graph: Graph) -> None:
        """Get ready to run on another form of the graph."""
        raise NotImplementedError

    def change(self, beta: float, current: Graph | None, graph: Graph | None) -> None:
        """Change to another form of the graph where the chains are; None is the exact one."""
        if graph is current:
            return
        if beta != 0:  # where couplings count for nothing
            if current is not None:
                self.log_weights += self.rounding_gap(beta, current)
            if graph is not None:
                self.log_weights -= self.rounding_gap(beta, graph)
        if graph is not None:
            self.enter(graph)


class BitChains(_Chains):
    """Chains of sites with two states, as the bits of words (group, site)."""

    kernel = staticmethod(run_bits)

    def __init__(self, prepared: GraphPath, state: States, generators: NDArray[np.uint32]) -> None:
        super().__init__(prepared, generators)
        self.shape = state.shape
        self.sites = pack_bits(state, self.n_sites)
        self.log_weights = np.zeros((len(self.sites), CHAINS))

    def log_f(self, beta: float) -> Floats:
        """Exact log f_beta (group, chain) where the chains are, without the base's share of the state."""
        return log_f_at(beta, self.exact, self.sites)

    def rounding_gap(self, beta: float, graph: Graph) -> Floats:
        return rounding_gap(beta, self.exact, graph, self.sites)

    def enter(self, graph: Graph) -> None:
        self.energy = state_energy(graph, self.sites)

    def state(self) -> States:
        state = np.empty(self.shape, np.uint8)
        unpack_bits(self.sites, state)
        return state


class TableChains(_Chains):
    """Chains of sites with any number of states (site, chain)."""

    kernel = staticmethod(run_tables)
    exact: Incidences

    def __init__(self, prepared: GraphPath, state: States, generators: NDArray[np.uint32]) -> None:
        super().__init__(prepared, generators)
        self.n_chains, self.n_state = state.shape
        self.sites = np.zeros((self.n_sites, max(1, self.n_chains)), np.uint8)
        self.sites[: self.n_state, : self.n_chains] = state.T
        self.log_weights = np.zeros(self.n_chains)

    def log_f(self, beta: float) -> Floats:
        """Exact log f_beta (chain,) where the chains are, without the base's share of the state."""
        return beta * self._energy(0.0) + self._summed_out(beta, self.exact.in_floats)

    def rounding_gap(self, beta: float, graph: Graph) -> Floats:
        gap = beta * (self._energy(0.0) - graph.scale * self._energy(graph.scale))
        return gap + self._summed_out(beta, self.exact.in_floats) - self._summed_out(beta, graph)

    def _summed_out(self, beta: float, graph: Graph | None) -> Floats | float:
        """The part (chain,) of what is summed out."""
        if graph is None or self.exact.in_floats is None:
            return 0.0
        return summed_out_log_f(beta, graph, self.sites, self.n_chains)

    def _energy(self, scale: float) -> Floats:
        """log f_1 - log f_0 (chain,) of the sites of the state, in steps of scale; of scale 0, exactly."""
        tables = self.exact.factors.tables
        among_state = (self.exact.orders > 1) & ~self.exact.with_summed_out
        return factor_energy(
            self.exact.fields, self.n_state, tables.scopes[among_state], tables.strides[among_state],
            tables.offsets[among_state], tables.values, scale, self.sites, self.n_chains,
        )  # fmt: skip

    def enter(self, graph: Graph) -> None:
        self.energy = self._energy(graph.scale).astype(np.int64)

    def state(self) -> States:
        return np.ascontiguousarray(self.sites[: self.n_state, : self.n_chains].T)
