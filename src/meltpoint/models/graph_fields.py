"""The fields of models on graphs: bits coupled in pairs, and units of any numbers of states with factors of any order.

The graph kernels have a form of each. Columns are those of a layout.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Indices, Sparse, UnitBlock
from meltpoint.annealing.field import MarkovRandomField
from meltpoint.layers import BERNOULLI, Potts
from meltpoint.layers.unit import Floats, Unit
from meltpoint.models.layout import Layout

_AT_ONCE = 4_000_000  # values that are looked up at once: memory does not grow with chains and sites


@dataclass(frozen=True, eq=False)
class GraphField(MarkovRandomField):
    """A Markov random field on a graph, whose blocks are those of a layout."""

    layout: Layout

    @property
    def graph(self) -> "GraphField":
        return self

    @abstractmethod
    def log_f_of_all(self, units: NDArray[Any]) -> Floats:
        """Log f (chain,) of all units, nothing summed out, without the constant."""

    @abstractmethod
    def unit_of(self, columns: Indices) -> Unit:
        """The unit that all these columns have."""

    @cached_property
    def state_blocks(self) -> tuple[UnitBlock, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return tuple(self._block(columns) for columns in self.layout.blocks)

    @cached_property
    def summed_out(self) -> UnitBlock | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        columns = np.arange(self.layout.n_state, len(self.layout.order))
        return self._block(columns) if len(columns) else None

    def _block(self, columns: Indices) -> UnitBlock:
        return UnitBlock(self.unit_of(columns), columns, (len(columns),))


@dataclass(frozen=True, eq=False)
class PairField(GraphField):
    """Fields (unit,) and couplings (unit, unit) of bits, in the columns of a layout.

    The matrix is symmetric and sparse, its diagonal is zero, and each pair counts once.
    """

    fields: Floats
    couplings: Sparse
    log_constant: float = 0.0

    def unit_of(self, columns: Indices) -> Unit:
        return BERNOULLI

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        # A sparse product adds in the same order however many chains there are.
        return np.asarray((self._rows[id(block)] @ _columns_of(units)).T) + self.fields[block.columns]

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        return self._log_f(units, self._among_state)

    def log_f_of_all(self, units: NDArray[Any]) -> Floats:
        return self._log_f(units, self.couplings)

    def _log_f(self, units: NDArray[Any], couplings: Sparse) -> Floats:
        own = units[:, : couplings.shape[0]]
        inputs = np.ascontiguousarray((couplings @ _columns_of(own)).T) / 2 + self.fields[: own.shape[1]]
        return (own * inputs).sum(axis=1)

    @cached_property
    def _rows(self) -> dict[int, Sparse]:
        return {id(block): self.couplings[block.columns] for block in self.unit_blocks}

    @cached_property
    def _among_state(self) -> Sparse:
        return scipy.sparse.csr_array(self.couplings[: self.n_state, : self.n_state])


def pair_field(layout: Layout, fields: Floats, couplings: Sparse, log_constant: float) -> PairField:
    """The field of bits whose fields (site,) and symmetric couplings (site, site) are given by sites."""
    order = layout.order
    matrix = scipy.sparse.csr_array(couplings[order][:, order])
    matrix.sort_indices()
    return PairField(layout, fields[order], matrix, log_constant)


def _columns_of(units: NDArray[Any]) -> Floats:
    """(unit, chain) for a sparse product from the left."""
    return np.ascontiguousarray(units.T, np.float64)


class Tables(NamedTuple):
    """Factors: scopes and strides (factor, place), offsets (factor,), and the values of all tables (entry,)."""

    scopes: Indices
    strides: Indices
    offsets: Indices
    values: Floats

    def take(self, units: NDArray[Any]) -> Floats:
        """The factors' values added up (chain,) at the states of all units (chain, unit)."""
        total = np.zeros(len(units))
        for rows in _parts(len(units), len(self.offsets)):
            total[rows] = self.values[_places(self, units[rows])].sum(axis=1)
        return total


@dataclass(frozen=True, eq=False)
class FactorField(GraphField):
    """Factors over the columns of a layout and the numbers of states (unit,); every unit is in a factor."""

    cardinalities: Indices
    tables: Tables
    log_constant: float = 0.0

    def unit_of(self, columns: Indices) -> Unit:
        return Potts(int(self.cardinalities[columns[0]]))

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        """The factors' values added up (chain, unit of the block, state), for each state of the unit."""
        tables, own_strides, first = self._incidences[id(block)]
        states = own_strides[:, np.newaxis] * np.arange(self.cardinalities[block.columns][0])
        inputs = np.empty((len(units), len(first), states.shape[1]))
        for rows in _parts(len(units), states.size):
            places = _places(tables, units[rows])[:, :, np.newaxis] + states
            inputs[rows] = np.add.reduceat(tables.values[places], first, axis=1)
        return inputs

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        return self._of_state.take(units)

    def log_f_of_all(self, units: NDArray[Any]) -> Floats:
        return self.tables.take(units)

    @property
    def largest(self) -> int:
        """The largest number of states."""
        return int(self.cardinalities.max())

    @cached_property
    def _of_state(self) -> Tables:
        outside = ((self.tables.scopes >= self.n_state) & (self.tables.strides > 0)).any(axis=1)
        scopes, strides, offsets, values = self.tables
        return Tables(scopes[~outside], strides[~outside], offsets[~outside], values)

    @cached_property
    def _incidences(self) -> dict[int, tuple[Tables, Indices, Indices]]:
        """Factors by unit of each block: tables without its place, its strides, and where its factors begin (unit,)."""
        tables = self.tables
        factor, place = np.nonzero(tables.strides)
        unit = tables.scopes[factor, place]
        by_unit = np.argsort(unit, kind="stable")
        factor, place = factor[by_unit], place[by_unit]
        begin = np.searchsorted(unit[by_unit], np.arange(self.n_units + 1))
        found = {}
        for block in self.unit_blocks:
            columns = np.arange(self.n_units)[block.columns]
            counts = begin[columns + 1] - begin[columns]
            rows = np.repeat(begin[columns] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            own, at = factor[rows], place[rows]
            strides = tables.strides[own].copy()
            strides[np.arange(len(own)), at] = 0
            others = Tables(tables.scopes[own], strides, tables.offsets[own], tables.values)
            found[id(block)] = others, tables.strides[own, at], np.cumsum(counts) - counts
        return found


def factor_field(
    layout: Layout,
    cardinalities: Indices,
    factors: Sequence[tuple[Sequence[int], Floats]],
    log_constant: float,
) -> FactorField:
    """The field of factors (scope in sites, log values) of order 1 and more, and numbers of states (site,)."""
    alone = np.ones(len(cardinalities), np.bool_)
    for scope, _ in factors:
        alone[list(scope)] = False
    # Sums over the factors of each unit need one at least.
    every = [*factors, *(((int(i),), np.zeros(cardinalities[i])) for i in np.flatnonzero(alone))]
    column = layout.column
    width = max(len(scope) for scope, _ in every)
    scopes, strides = np.zeros((2, len(every), width), np.int64)
    for k, (scope, table) in enumerate(every):
        scopes[k, : len(scope)] = column[list(scope)]
        strides[k, : len(scope)] = np.cumprod([1, *table.shape[:0:-1]])[::-1]
    offsets = np.cumsum([0, *(table.size for _, table in every[:-1])])
    values = np.concatenate([table.ravel() for _, table in every])
    return FactorField(
        layout, cardinalities[layout.order], Tables(scopes, strides, offsets, values), log_constant
    )


def _places(tables: Tables, units: NDArray[Any]) -> Indices:
    """Where the values (chain, factor) of the factors are at these states."""
    places = np.broadcast_to(tables.offsets, (len(units), len(tables.offsets))).copy()
    for scope, stride in zip(tables.scopes.T, tables.strides.T, strict=True):
        places += units[:, scope] * stride
    return places


def _parts(rows: int, width: int) -> list[slice]:
    """Parts of the rows, each small enough to be looked up in bounded memory."""
    size = max(1, _AT_ONCE // max(1, width))
    return [slice(low, low + size) for low in range(0, rows, size)]
