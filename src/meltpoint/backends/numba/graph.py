"""The backend of graphs: sites with a few states each, coupled by pairs or by larger factors, in any number of blocks.

Kernels work with whole numbers of steps: the path they run leads to a model whose fields and couplings are rounded to
multiples of a scale. Steps are 2**-23 of the largest input (2**-51 in float64), and between the ends of the path 2**-15
where tables would otherwise leave the cache. Wherever the chains change to other steps, and at both ends of every
segment, the weight takes the factor between the two paths at that beta, in float64: no rounding is left in it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.annealing.path import BlockGibbs, Path
from meltpoint.backends.backend import PreparedPath, Tile, run_without_chains
from meltpoint.backends.numba.kernels.bit_graph import (
    BitGraph,
    bits_of_base,
    log_f_at,
    pack_bit_graph,
    rounding_gap,
    run_bits,
    state_energy,
)
from meltpoint.backends.numba.kernels.chains import CHAINS, group_generators, n_groups, pack_bits, unpack_bits
from meltpoint.backends.numba.kernels.table_graph import (
    TableGraph,
    factor_energy,
    run_tables,
    summed_out_log_f,
)
from meltpoint.backends.numba.kernels.table_packing import Incidences, incidences, pack_tables
from meltpoint.backends.numba.precision import (
    TOLERATED_VARIANCE,
    Precision,
    PrecisionSpan,
    check_precision,
    cut_at_model,
)
from meltpoint.kernels.streams import LANES
from meltpoint.layers.unit import Floats, States
from meltpoint.models.graph_fields import FactorField, PairField

Form = TypeVar("Form", BitGraph, TableGraph)
"""A graph with whole numbers of one step."""


class Chains(ABC, Generic[Form]):
    """A tile's chains in one layout; arrays are changed in place by the kernels."""

    log_weights: Floats  # (chain,), those that fill up the last group included

    @abstractmethod
    def log_f(self, beta: float) -> Floats:
        """Exact log f_beta (chain,) where the chains are, without the base's share of the state."""

    @abstractmethod
    def rounding_gap(self, beta: float, graph: Form) -> Floats:
        """The same (chain,) less that of a rounded graph."""

    @abstractmethod
    def enter(self, graph: Form) -> None:
        """Get ready to run on another form of the graph."""

    @abstractmethod
    def run(self, graph: Form, segment: Segment, betas: Floats) -> None:
        """Take the chains through some of a segment's betas."""

    @abstractmethod
    def state(self) -> States:
        """States (chain, site of the state)."""


class Forms(Protocol[Form]):
    """A graph in one layout, with the steps of each precision."""

    @property
    def fine(self) -> Form:
        """The form for moves at beta 1, and everywhere if there is no other."""
        ...

    @property
    def coarse(self) -> Form | None:
        """The form for betas below 1, if it is another one."""
        ...

    @property
    def work(self) -> int:
        """What a sweep of one chain costs, in updates of sites with two neighbours."""
        ...

    def start(self, state: States, generators: NDArray[np.uint32]) -> Chains[Form]:
        """Chains in these states (chain, site of the state)."""
        ...


def bit_forms(graph: PairField, path: BlockPath, precision: Precision) -> "BitForms":
    """A graph of sites with two states, as a path's base and the precision need it."""
    base = bits_of_base(path)
    whole = np.int64 if precision == "float64" else np.int32
    return BitForms(pack_bit_graph(graph, base, np.float64), pack_bit_graph(graph, base, whole))


def table_forms(factors: FactorField, path: BlockPath, precision: Precision) -> "TableForms":
    """Factors, as a path's base and the precision need them; with 16 bits where these are fine enough."""
    incident = incidences(factors, path)
    fine = pack_tables(incident, np.int64 if precision == "float64" else np.int32)
    scale = incident.scale(np.dtype(np.int16))
    fits = precision == "mixed" and incident.rounding_variance(scale) <= TOLERATED_VARIANCE
    coarse = pack_tables(incident, np.int16) if fits else None
    exact = pack_tables(incident, np.float64) if factors.summed_out is not None else None
    return TableForms(incident, exact, fine, coarse)


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

    def start(self, state: States, generators: NDArray[np.uint32]) -> "BitChains":
        return BitChains(self, state, generators)


class BitChains(Chains[BitGraph]):
    """Chains of sites with two states, as the bits of words (group, site)."""

    def __init__(self, forms: BitForms, state: States, generators: NDArray[np.uint32]) -> None:
        self.forms, self.shape = forms, state.shape
        self.words = pack_bits(state, forms.fine.sites.size)
        self.generators = group_generators(generators)
        self.energy = np.zeros((len(self.words), CHAINS), np.int64)
        self.log_weights = np.zeros(len(self.words) * CHAINS)
        self.drawn = 0  # positions, whose generators take turns

    def log_f(self, beta: float) -> Floats:
        """Exact log f_beta (chain,)."""
        return log_f_at(beta, self.forms.exact, self.words).reshape(-1)

    def rounding_gap(self, beta: float, graph: BitGraph) -> Floats:
        return rounding_gap(beta, self.forms.exact, graph, self.words).reshape(-1)

    def enter(self, graph: BitGraph) -> None:
        self.energy = state_energy(graph, self.words)

    def run(self, graph: BitGraph, segment: Segment, betas: Floats) -> None:
        clamped = _clamped(segment, self.words.shape[1])
        weights = self.log_weights.reshape(self.energy.shape)
        run_bits(
            betas, graph, segment.reversed_sweeps, clamped, self.words, self.generators, self.drawn % LANES,
            self.energy, weights,
        )  # fmt: skip
        self.drawn += (betas.size - 1) * graph.sites.size

    def state(self) -> States:
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

    def start(self, state: States, generators: NDArray[np.uint32]) -> "TableChains":
        return TableChains(self, state, generators)


class TableChains(Chains[TableGraph]):
    """Chains of sites with any number of states (site, chain)."""

    def __init__(self, forms: TableForms, state: States, generators: NDArray[np.uint32]) -> None:
        self.forms, self.n_chains = forms, len(state)
        self.sites = np.zeros((forms.fine.sites.size, max(1, len(state))), np.uint8)
        self.sites[: state.shape[1], : len(state)] = state.T
        self.generators = group_generators(generators)
        self.energy = np.zeros(len(state), np.int64)
        self.log_weights = np.zeros(len(state))
        self.drawn = 0

    def log_f(self, beta: float) -> Floats:
        """Exact log f_beta (chain,)."""
        return beta * self._energy(0.0) + self._summed_out(beta, self.forms.exact)

    def rounding_gap(self, beta: float, graph: TableGraph) -> Floats:
        rounded = graph.scale * self._energy(graph.scale)
        gap = beta * (self._energy(0.0) - rounded)
        return gap + self._summed_out(beta, self.forms.exact) - self._summed_out(beta, graph)

    def _summed_out(self, beta: float, graph: TableGraph | None) -> Floats:
        """The part (chain,) of what is summed out."""
        if graph is None or self.forms.exact is None:
            return np.zeros(self.n_chains)
        return summed_out_log_f(beta, graph, self.sites, self.n_chains)

    def _energy(self, scale: float) -> Floats:
        incident = self.forms.incident
        factors, tables = incident.factors, incident.factors.tables
        among_state = (incident.orders > 1) & ~incident.with_summed_out
        return factor_energy(
            incident.fields, factors.n_state, tables.scopes[among_state], tables.strides[among_state],
            tables.offsets[among_state], tables.values, scale, self.sites, self.n_chains,
        )  # fmt: skip

    def enter(self, graph: TableGraph) -> None:
        self.energy = self._energy(graph.scale).astype(np.int64)

    def run(self, graph: TableGraph, segment: Segment, betas: Floats) -> None:
        clamped = _clamped(segment, len(self.sites))
        run_tables(
            betas, graph, segment.reversed_sweeps, clamped, self.sites, self.generators, self.drawn % LANES,
            self.energy, self.log_weights,
        )  # fmt: skip
        self.drawn += (betas.size - 1) * graph.sites.size

    def state(self) -> States:
        return np.ascontiguousarray(self.sites[: self.forms.incident.factors.n_state, : self.n_chains].T)


def _clamped(segment: Segment, n_sites: int) -> NDArray[np.uint8]:
    clamped = np.zeros(n_sites, np.uint8)
    if segment.clamped is not None:
        clamped[: segment.clamped.size] = segment.clamped
    return clamped


_CALL_WORK = 200_000_000  # updates of sites with two neighbours per kernel call: a fraction of a second
_LEAST_WORK = 4_000_000  # some milliseconds: what surrounds a call must not be felt
_MOST_STATES = 256  # of which a byte holds one


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

    def prepare(self, path: BlockPath, precision: Precision) -> PreparedPath:
        check_precision(precision)
        graph = path.target.graph
        if isinstance(graph, PairField):
            bits = bit_forms(graph, path, precision)
            return GraphPath(path, bits, _constant(path, bits))
        tables = table_forms(graph, path, precision)
        return GraphPath(path, tables, _constant(path, tables))


@dataclass(frozen=True, eq=False)
class GraphPath(Generic[Form]):
    """A path in the kernels' layout, and what log f_1 - log f_0 has beyond it in any state."""

    path: BlockPath
    forms: Forms[Form]
    constant: float

    def compile(self) -> None:
        """Compile what it needs, or load it from a cache."""
        run_without_chains(self)

    def advance(self, tile: Tile, segments: Sequence[Segment], steps: int) -> Iterator[None]:
        chains = self.forms.start(tile.state, tile.streams.generators())
        n_chains = len(tile.state)
        work = self.forms.work * CHAINS * max(1, n_groups(n_chains))
        steps = max(1, min(max(steps, _LEAST_WORK // work), _CALL_WORK // work))
        cumulative = np.empty_like(tile.cumulative_log_weights)
        current = None
        for k, segment in enumerate(segments):
            for span in self._spans(segment.betas):
                graph = self.forms.fine if span.exact or self.forms.coarse is None else self.forms.coarse
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


def _change(chains: Chains[Form], beta: float, current: Form | None, graph: Form | None) -> None:
    """Change to another form of the graph where the chains are; None is the exact one."""
    if graph is current:
        return
    if beta != 0:  # where couplings count for nothing
        if current is not None:
            chains.log_weights += chains.rounding_gap(beta, current)
        if graph is not None:
            chains.log_weights -= chains.rounding_gap(beta, graph)
    if graph is not None:
        chains.enter(graph)


def _constant(path: BlockPath, forms: Forms[Form]) -> float:
    """What log f_1 - log f_0 has beyond the sum over sites and factors, in any state."""
    zeros = np.zeros((1, path.target.n_state), path.target.dtype)
    chains = forms.start(zeros, np.zeros((1, 4, LANES), np.uint32))
    found = chains.log_f(1.0)[0] - chains.log_f(0.0)[0]
    return float(path.log_f(1.0, zeros)[0] - path.log_f(0.0, zeros)[0] - found)
