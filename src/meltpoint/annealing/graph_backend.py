"""The backend of graphs: sites with a few states each, coupled by pairs or by larger factors, in any number of blocks.

Kernels work with whole numbers of steps: the path they run leads to a model whose fields and couplings are rounded to
multiples of a scale. Steps are 2**-23 of the largest input (2**-51 in float64), and between the ends of the path 2**-15
where tables would otherwise leave the cache. Wherever the chains change to other steps, and at both ends of every
segment, the weight takes the factor between the two paths at that beta, in float64: no rounding is left in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.backend import Tile
from meltpoint.annealing.kernels.bit_graph import BitGraph, log_f_at, run_bits, state_energy
from meltpoint.annealing.kernels.chains import (
    CHAINS,
    group_generators,
    n_groups,
    pack_bits,
    unpack_bits,
)
from meltpoint.annealing.kernels.graph_packing import bits_of_base, pack_bit_graph
from meltpoint.annealing.kernels.table_graph import TableGraph, factor_energy, run_tables, summed_out_log_f
from meltpoint.annealing.kernels.table_packing import Incidences, incidences, pack_tables
from meltpoint.annealing.path import AnnealingPath
from meltpoint.annealing.precision import (
    TOLERATED_VARIANCE,
    Precision,
    PrecisionSpan,
    check_precision,
    cut_at_model,
)
from meltpoint.annealing.streams import LANES
from meltpoint.models.blocks import Segment
from meltpoint.models.factor_tables import FactorTables, factors_of_pairs
from meltpoint.units.unit import Bits, Floats

_CALL_WORK = 200_000_000  # updates of sites with two neighbours per kernel call: a fraction of a second
_LEAST_WORK = 4_000_000  # some milliseconds: what surrounds a call must not be felt
_MOST_STATES = 256


class GraphBackend:
    """Runs paths to graphs."""

    name = "graph"

    def supports(self, path: AnnealingPath) -> bool:
        """Whether it can run a path: if its target is a graph of pairs or of factors, with one byte for a state."""
        target = path.target
        if target.pairwise is not None:
            return target.pairwise.states <= _MOST_STATES
        return target.factor_tables is not None and target.factor_tables.largest <= _MOST_STATES

    def prepare(self, path: AnnealingPath, precision: Precision) -> "GraphPath":
        """Lay a path out for the kernels. `mixed` falls back to float32 where 16 bits are too coarse."""
        check_precision(precision)
        graph, tables = path.target.pairwise, path.target.factor_tables
        whole = np.int64 if precision == "float64" else np.int32
        if graph is not None and graph.fields.ndim == 1:
            base = bits_of_base(path)
            bits = BitForms(pack_bit_graph(graph, base, np.float64), pack_bit_graph(graph, base, whole))
            return GraphPath(path, bits, _constant(path, bits))
        factors = factors_of_pairs(graph) if graph is not None else tables
        assert factors is not None, "supports"
        forms = _table_forms(factors, path, precision)
        return GraphPath(path, forms, _constant(path, forms))


def _table_forms(factors: FactorTables, path: AnnealingPath, precision: Precision) -> "TableForms":
    incident = incidences(factors, path)
    fine = pack_tables(incident, np.int64 if precision == "float64" else np.int32)
    coarse = None
    if precision == "mixed":
        scale = incident.scale(np.dtype(np.int16))
        if incident.rounding_variance(scale) <= TOLERATED_VARIANCE:
            coarse = pack_tables(incident, np.int16)
    exact = pack_tables(incident, np.float64) if factors.summed_out is not None else None
    return TableForms(incident, exact, fine, coarse)


class Chains(Protocol):
    """A tile's chains in one layout; arrays are changed in place by the kernels."""

    log_weights: Floats  # (chain,), those that fill up the last group included

    def log_f(self, beta: float, graph: Any) -> Floats:
        """log f_beta (chain,) where the chains are, without the base's share of the state; None is the exact graph."""
        ...

    def enter(self, graph: Any) -> None:
        """Get ready to run on another form of the graph."""
        ...

    def run(self, graph: Any, segment: Segment, betas: Floats) -> None:
        """Take the chains through some of a segment's betas."""
        ...

    def state(self) -> Bits:
        """States (chain, site of the state)."""
        ...


class Forms(Protocol):
    """A graph in one layout, with the steps of each precision."""

    fine: Any

    @property
    def coarse(self) -> Any:
        """The form for betas below 1, if it is another one."""
        ...

    @property
    def work(self) -> int:
        """What a sweep of one chain costs, in updates of sites with two neighbours."""
        ...

    def start(self, state: Bits, generators: NDArray[np.uint32]) -> Chains:
        """Chains in these states (chain, site of the state)."""
        ...


@dataclass(frozen=True, eq=False)
class GraphPath:
    """A path in the kernels' layout, and what log f_1 - log f_0 has beyond it in any state."""

    path: AnnealingPath
    forms: Forms
    constant: float

    def compile(self) -> None:
        """Run each kernel once, on nothing."""
        target = self.path.target
        state, generators = np.zeros((0, target.n_state), target.dtype), np.zeros((0, 4, LANES), np.uint32)
        chains = self.forms.start(state, generators)
        for graph in (self.forms.fine, self.forms.coarse):
            if graph is not None:
                chains.enter(graph)
                chains.log_f(1.0, graph)
                chains.run(graph, Segment(np.ones(1)), np.ones(1))
        chains.log_f(1.0, None)
        chains.state()

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        """Take the tile's chains through the segments; pause for other tiles after about so many steps."""
        chains = self.forms.start(tile.state, tile.streams.generators())
        n_chains = len(tile.state)
        work = self.forms.work * CHAINS * n_groups(n_chains)
        steps = max(1, min(max(steps, _LEAST_WORK // work), _CALL_WORK // work))
        cumulative = np.empty_like(tile.cumulative_log_weights)
        current = None
        for k, segment in enumerate(segments):
            for span in self._spans(segment.betas):
                graph = self.forms.fine if span.exact else self.forms.coarse
                _change(chains, span.betas[0], current, graph)
                current = graph
                for low in range(0, span.betas.size - 1, steps):
                    betas = np.ascontiguousarray(span.betas[low : low + steps + 1])
                    chains.run(graph, segment, betas)
                    tile.count(betas.size - 1)
                    yield
            _change(chains, segment.betas[-1], current, None)
            current = None
            chains.log_weights += (segment.betas[-1] - segment.betas[0]) * self.constant
            cumulative[:, k] = chains.log_weights[:n_chains]
        tile.finish(chains.state(), cumulative)

    def _spans(self, betas: Floats) -> list[PrecisionSpan]:
        """Betas cut by the steps they are run in."""
        return [PrecisionSpan(betas, True)] if self.forms.coarse is None else cut_at_model(betas)


def _change(chains: Chains, beta: float, current: Any, graph: Any) -> None:
    """Change to another form of the graph where the chains are; None is the exact one."""
    if graph is current:
        return
    if beta != 0:  # where couplings count for nothing
        chains.log_weights += chains.log_f(beta, graph) - chains.log_f(beta, current)
    if graph is not None:
        chains.enter(graph)


def _constant(path: AnnealingPath, forms: Forms) -> float:
    """What log f_1 - log f_0 has beyond the sum over sites and factors, in any state."""
    zeros = np.zeros((1, path.target.n_state), path.target.dtype)
    chains = forms.start(zeros, np.zeros((1, 4, LANES), np.uint32))
    found = chains.log_f(1.0, None)[0] - chains.log_f(0.0, None)[0]
    return float(path.log_f(1.0, zeros)[0] - path.log_f(0.0, zeros)[0] - found)


def _clamped(segment: Segment, n_sites: int) -> NDArray[np.uint8]:
    clamped = np.zeros(n_sites, np.uint8)
    if segment.clamped is not None:
        clamped[: segment.clamped.size] = segment.clamped
    return clamped


@dataclass(frozen=True, eq=False)
class BitForms:
    """A graph of sites with two states: in float64, and in whole numbers."""

    exact: BitGraph
    fine: BitGraph
    coarse: None = None

    @property
    def work(self) -> int:
        """Updates of sites."""
        return self.fine.sites.size + self.fine.neighbours.size // 4

    def start(self, state: Bits, generators: NDArray[np.uint32]) -> "BitChains":
        """Chains in these states (chain, site of the state)."""
        return BitChains(self, state, generators)


class BitChains:
    """Chains of sites with two states, as the bits of words (group, site)."""

    def __init__(self, forms: BitForms, state: Bits, generators: NDArray[np.uint32]) -> None:
        self.forms, self.shape = forms, state.shape
        self.words = pack_bits(state, forms.fine.sites.size)
        self.generators = group_generators(generators)
        self.energy = np.zeros((len(self.words), CHAINS), np.int64)
        self.log_weights = np.zeros(len(self.words) * CHAINS)
        self.drawn = 0  # positions, whose generators take turns

    def log_f(self, beta: float, graph: BitGraph | None) -> Floats:
        """log f_beta (chain,)."""
        return log_f_at(beta, self.forms.exact if graph is None else graph, self.words).reshape(-1)

    def enter(self, graph: BitGraph) -> None:
        """Add up log f in its steps."""
        self.energy = state_energy(graph, self.words)

    def run(self, graph: BitGraph, segment: Segment, betas: Floats) -> None:
        """Take the chains through some of a segment's betas."""
        clamped = _clamped(segment, self.words.shape[1])
        weights = self.log_weights.reshape(self.energy.shape)
        run_bits(
            betas, graph, segment.reversed_sweeps, clamped, self.words, self.generators, self.drawn % LANES,
            self.energy, weights,
        )  # fmt: skip
        self.drawn += (betas.size - 1) * graph.sites.size

    def state(self) -> Bits:
        """States (chain, site of the state)."""
        state = np.empty(self.shape, np.uint8)
        unpack_bits(self.words, state)
        return state


@dataclass(frozen=True, eq=False)
class TableForms:
    """Factors of sites with any number of states: exact where it is needed, and in whole numbers."""

    incident: Incidences
    exact: TableGraph | None
    fine: TableGraph
    coarse: TableGraph | None

    @property
    def work(self) -> int:
        """Vectors that are added, and some for a draw."""
        vectors = max(1, self.fine.base.shape[1] // 16)
        return 4 * vectors * (16 * self.fine.sites.size + self.fine.at.size)

    def start(self, state: Bits, generators: NDArray[np.uint32]) -> "TableChains":
        """Chains in these states (chain, site of the state)."""
        return TableChains(self, state, generators)


class TableChains:
    """Chains of sites with any number of states (site, chain)."""

    def __init__(self, forms: TableForms, state: Bits, generators: NDArray[np.uint32]) -> None:
        self.forms, self.n_chains = forms, len(state)
        self.sites = np.zeros((forms.fine.sites.size, max(1, len(state))), np.uint8)
        self.sites[: state.shape[1], : len(state)] = state.T
        self.generators = group_generators(generators)
        self.energy = np.zeros(len(state), np.int64)
        self.log_weights = np.zeros(len(state))
        self.drawn = 0

    def log_f(self, beta: float, graph: TableGraph | None) -> Floats:
        """log f_beta (chain,)."""
        summed_out = self.forms.exact if graph is None else graph
        scale = 0.0 if graph is None else graph.scale
        log_f = beta * (scale or 1.0) * self._energy(scale)
        if self.forms.exact is not None and summed_out is not None:
            log_f += summed_out_log_f(beta, summed_out, self.sites, self.n_chains)
        return log_f

    def _energy(self, scale: float) -> Floats:
        incident = self.forms.incident
        factors = incident.factors
        among_state = (incident.orders > 1) & ~incident.with_summed_out
        return factor_energy(
            incident.fields, factors.n_state, factors.scopes[among_state], factors.strides[among_state],
            factors.offsets[among_state], factors.values, scale, self.sites, self.n_chains,
        )  # fmt: skip

    def enter(self, graph: TableGraph) -> None:
        """Add up log f in its steps."""
        self.energy = self._energy(graph.scale).astype(np.int64)

    def run(self, graph: TableGraph, segment: Segment, betas: Floats) -> None:
        """Take the chains through some of a segment's betas."""
        clamped = _clamped(segment, len(self.sites))
        run_tables(
            betas, graph, segment.reversed_sweeps, clamped, self.sites, self.generators, self.drawn % LANES,
            self.energy, self.log_weights,
        )  # fmt: skip
        self.drawn += (betas.size - 1) * graph.sites.size

    def state(self) -> Bits:
        """States (chain, site of the state)."""
        return np.ascontiguousarray(self.sites[: self.forms.incident.factors.n_state, : self.n_chains].T)
