"""Fields on graphs, written for a reader: dense couplings, any blocks. What the kernels are compared with."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from meltpoint.annealing.blocks import UnitBlock
from meltpoint.annealing.field import MarkovRandomField
from meltpoint.layers import unit_named
from meltpoint.layers.potts import Potts
from meltpoint.layers.unit import Floats, Unit
from meltpoint.models.graph_fields import FactorField, PairField, factor_field
from meltpoint.models.layout import Layout


@dataclass(frozen=True, eq=False)
class BitField(MarkovRandomField):
    """log f = bias·x + ½ x·couplings·x over the values of two-state units; the last block may be summed out."""

    unit: Unit
    bias: Floats  # (site,)
    coupling_matrix: Floats  # (site, site), symmetric, with a zero diagonal
    sites: tuple[NDArray[np.int64], ...]  # of each block
    sums_out: bool = False

    @property
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        return tuple(self._block(sites) for sites in (self.sites[:-1] if self.sums_out else self.sites))

    @property
    def summed_out(self) -> UnitBlock | None:
        return self._block(self.sites[-1]) if self.sums_out else None

    def _block(self, sites: NDArray[np.int64]) -> UnitBlock:
        return UnitBlock(self.unit, sites, (len(sites),))

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        x = self.unit.decode(units).astype(float)
        return self.bias[block.columns] + x @ self.coupling_matrix[:, block.columns]

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        n = self.n_state
        x = self.unit.decode(units[:, :n]).astype(float)
        return x @ self.bias[:n] + np.einsum("ci,ij,cj->c", x, self.coupling_matrix[:n, :n], x) / 2

    @property
    def graph(self) -> PairField:
        scale, offset = self.unit.scale, self.unit.offset
        fields = scale * (self.bias + offset * self.coupling_matrix.sum(axis=1))
        return PairField(_layout(self), fields, sparse.csr_array(scale**2 * self.coupling_matrix))


@dataclass(frozen=True, eq=False)
class PottsField(MarkovRandomField):
    """log f = sum of fields (site, state) and of couplings (site, site, state, state) over pairs i < j."""

    fields: Floats
    tables: Floats  # symmetric: tables[i, j, a, b] == tables[j, i, b, a], zero for i == j
    sites: tuple[NDArray[np.int64], ...]
    sums_out: bool = False

    @property
    def q(self) -> int:
        return self.fields.shape[1]

    @property
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        return tuple(self._block(sites) for sites in (self.sites[:-1] if self.sums_out else self.sites))

    @property
    def summed_out(self) -> UnitBlock | None:
        return self._block(self.sites[-1]) if self.sums_out else None

    def _block(self, sites: NDArray[np.int64]) -> UnitBlock:
        return UnitBlock(Potts(self.q), sites, (len(sites),))

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        one_hot = np.eye(self.q)[units]
        return self.fields[block.columns] + np.einsum("cjb,ijab->cia", one_hot, self.tables[block.columns])

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        n = self.n_state
        one_hot = np.eye(self.q)[units[:, :n]]
        pairs = np.einsum("cia,ijab,cjb->c", one_hot, self.tables[:n, :n], one_hot) / 2
        return np.einsum("cia,ia->c", one_hot, self.fields[:n]) + pairs

    @property
    def graph(self) -> FactorField:
        pairs = np.argwhere(np.triu(np.abs(self.tables).max(axis=(2, 3)) > 0))
        single = [((i,), table) for i, table in enumerate(self.fields)]
        double = [((i, j), self.tables[i, j]) for i, j in pairs.tolist()]
        counts = np.full(len(self.fields), self.q)
        return factor_field(_layout(self), counts, [*single, *double], 0.0)


def _layout(field: BitField | PottsField) -> Layout:
    n = sum(map(len, field.sites))
    return Layout(np.arange(n), field.n_state, tuple(block.columns for block in field.state_blocks), False)


def grid(rows: int, columns: int) -> NDArray[np.bool_]:
    """Which sites (site, site) of an open grid are neighbours."""
    i, j = np.divmod(np.arange(rows * columns), columns)
    return np.abs(i[:, np.newaxis] - i) + np.abs(j[:, np.newaxis] - j) == 1


def colours(adjacency: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Sites of each colour of a greedy colouring."""
    colour = np.full(len(adjacency), -1)
    for site in range(len(adjacency)):
        taken = set(colour[adjacency[site]].tolist())
        colour[site] = next(c for c in range(len(adjacency)) if c not in taken)
    return [np.flatnonzero(colour == c) for c in range(colour.max() + 1)]


def in_blocks(
    adjacency: NDArray[np.bool_], sums_out: bool
) -> tuple[NDArray[np.bool_], Sequence[NDArray[np.int64]]]:
    """The graph with its sites renumbered so that blocks are consecutive, and its blocks of uncoupled sites."""
    blocks = colours(adjacency)
    order = np.concatenate(blocks)
    if not sums_out:  # any order of columns is allowed
        return adjacency, blocks
    edges = np.cumsum([0, *map(len, blocks)])
    renumbered = [np.arange(low, high) for low, high in itertools.pairwise(edges)]
    return adjacency[np.ix_(order, order)], renumbered


def bit_field(
    adjacency: NDArray[np.bool_], unit: str, seed: int, sums_out: bool = False, scale: float = 0.6
) -> BitField:
    """Random fields and couplings on a graph."""
    rng = np.random.default_rng(seed)
    adjacency, blocks = in_blocks(adjacency, sums_out)
    couplings = np.triu(rng.normal(0, scale, adjacency.shape), 1) * adjacency
    return BitField(
        unit_named(unit),
        rng.normal(0, scale, len(adjacency)),
        couplings + couplings.T,
        tuple(blocks),
        sums_out,
    )


def potts_field(
    adjacency: NDArray[np.bool_], q: int, seed: int, sums_out: bool = False, scale: float = 0.6
) -> PottsField:
    """Random fields and couplings on a graph, q states each."""
    rng = np.random.default_rng(seed)
    adjacency, blocks = in_blocks(adjacency, sums_out)
    n = len(adjacency)
    tables = rng.normal(0, scale, (n, n, q, q)) * np.triu(adjacency, 1)[:, :, np.newaxis, np.newaxis]
    return PottsField(
        rng.normal(0, scale, (n, q)), tables + tables.transpose(1, 0, 3, 2), tuple(blocks), sums_out
    )
