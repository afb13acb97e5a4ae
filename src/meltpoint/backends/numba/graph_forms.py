"""Graphs in the layouts of the kernels, with the steps of each precision, and tiles of chains on them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.backends.numba.kernels.bit_graph import (
    BitGraph,
    log_f_at,
    rounding_gap,
    run_bits,
    state_energy,
)
from meltpoint.backends.numba.kernels.chains import CHAINS, group_generators, pack_bits, unpack_bits
from meltpoint.backends.numba.kernels.graph_packing import bits_of_base, pack_bit_graph
from meltpoint.backends.numba.kernels.table_graph import (
    TableGraph,
    factor_energy,
    run_tables,
    summed_out_log_f,
)
from meltpoint.backends.numba.kernels.table_packing import Incidences, incidences, pack_tables
from meltpoint.backends.numba.precision import TOLERATED_VARIANCE, Precision
from meltpoint.kernels.streams import LANES
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.binary_field import BinaryField
from meltpoint.models.factor_field import FactorField

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
    def state(self) -> Bits:
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

    def start(self, state: Bits, generators: NDArray[np.uint32]) -> Chains[Form]:
        """Chains in these states (chain, site of the state)."""
        ...


def bit_forms(graph: BinaryField, path: BlockPath, precision: Precision) -> "BitForms":
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

    def start(self, state: Bits, generators: NDArray[np.uint32]) -> "BitChains":
        return BitChains(self, state, generators)


class BitChains(Chains[BitGraph]):
    """Chains of sites with two states, as the bits of words (group, site)."""

    def __init__(self, forms: BitForms, state: Bits, generators: NDArray[np.uint32]) -> None:
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

    def state(self) -> Bits:
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
        return TableChains(self, state, generators)


class TableChains(Chains[TableGraph]):
    """Chains of sites with any number of states (site, chain)."""

    def __init__(self, forms: TableForms, state: Bits, generators: NDArray[np.uint32]) -> None:
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

    def state(self) -> Bits:
        return np.ascontiguousarray(self.sites[: self.forms.incident.factors.n_state, : self.n_chains].T)


def _clamped(segment: Segment, n_sites: int) -> NDArray[np.uint8]:
    clamped = np.zeros(n_sites, np.uint8)
    if segment.clamped is not None:
        clamped[: segment.clamped.size] = segment.clamped
    return clamped
