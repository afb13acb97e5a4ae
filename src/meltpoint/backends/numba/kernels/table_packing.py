"""Factors laid out for the kernels: a table for every site of every factor, its own states side by side."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.field import BlockPath
from meltpoint.backends.numba.kernels.bit_graph import in_steps
from meltpoint.backends.numba.kernels.table_graph import ABSENT, TableGraph
from meltpoint.layers.unit import Floats
from meltpoint.models.graph_fields import FactorField

_BITS = {np.dtype(np.int16): 15, np.dtype(np.int32): 23, np.dtype(np.int64): 51}
"""Of a state's d: a real number of the kernel holds it exactly."""
_ENERGY_BITS = 52
"""Of log f in steps: a float64 holds it exactly."""
_LEAST_WIDTH = 8
_AT_ONCE = 4_000_000  # elements that are laid out in one go


@dataclass(frozen=True, eq=False)
class Incidences:
    """Factors of two sites and more as each of their sites sees them, in the order of a forward sweep."""

    factors: FactorField
    fields: Floats  # (site, state): factors of one site, less the base
    base: Floats  # (site, state)

    @cached_property
    def orders(self) -> NDArray[np.int64]:
        """Number of sites (factor,)."""
        return (self.factors.tables.strides > 0).sum(axis=1)

    @cached_property
    def sites(self) -> NDArray[np.int64]:
        """The site (position,) that is redrawn at each position, what is summed out first."""
        summed_out = np.arange(self.factors.n_state, self.factors.n_units)
        return np.concatenate([summed_out, *self.factors.layout.blocks]).astype(np.int64)

    @cached_property
    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Factor, place and position (entry,), by position; entries with what is summed out after the others."""
        factors = self.factors
        position = np.empty(factors.n_units, np.int64)
        position[self.sites] = np.arange(factors.n_units)
        factor, place = np.nonzero((factors.tables.strides > 0) & (self.orders > 1)[:, np.newaxis])
        at = position[factors.tables.scopes[factor, place]]
        order = np.lexsort((factor, self.with_summed_out[factor], at))
        return factor[order], place[order], at[order]

    @cached_property
    def with_summed_out(self) -> NDArray[np.bool_]:
        """Whether a factor (factor,) has a site that is summed out."""
        factors = self.factors
        summed_out = (factors.tables.scopes >= factors.n_state) & (factors.tables.strides > 0)
        return np.asarray(summed_out.any(axis=1))

    @cached_property
    def largest(self) -> Floats:
        """The largest |value| of each factor (factor,)."""
        sizes = np.where(self.orders > 0, _shapes(self.factors).prod(axis=1), 0)
        # A table's values are those from its offset on, in whatever order its strides say.
        spans = np.stack([self.factors.tables.offsets, self.factors.tables.offsets + sizes], axis=1).ravel()
        padded = np.append(np.abs(self.factors.tables.values), 0.0)
        return np.where(sizes > 0, np.maximum.reduceat(padded, spans)[::2], 0.0)

    @cached_property
    def reach(self) -> Floats:
        """What |d| can be at most (position,)."""
        factor, _, position = self.entries
        of_factors = np.bincount(position, self.largest[factor], minlength=len(self.sites))
        return np.abs(self.fields).max(axis=1)[self.sites] + of_factors

    def scale(self, dtype: np.dtype[Any]) -> float:
        """The step of whole numbers of a type; 1 for float64, which is not rounded."""
        if dtype == np.float64:
            return 1.0
        # Each rounded value may be half a step larger.
        degree = np.bincount(self.entries[2], minlength=1).max()
        room = max(1.0, 2.0 ** _BITS[dtype] - degree - 2)
        largest = max(self.reach.max(initial=0.0) / room, self.reach.sum() / 2.0**_ENERGY_BITS)
        return float(largest) if largest > 0 else 1.0

    def rounding_variance(self, scale: float) -> float:
        """Variance of log f_exact - log f_rounded for steps of this scale, if the roundings are independent."""
        return (len(self.orders) + self.factors.n_units) * scale**2 / 12

    @cached_property
    def in_floats(self) -> TableGraph | None:
        """The factors as they are, where some sites are summed out."""
        return None if self.factors.summed_out is None else self.packed(np.dtype(np.float64))

    def packed(self, dtype: np.dtype[Any]) -> TableGraph:
        """The factors with whole numbers of a type, or in float64 as they are."""
        factors, sites, scale = self.factors, self.sites, self.scale(dtype)
        factor, place, position = self.entries
        n_summed = factors.n_units - factors.n_state
        bits = max(_LEAST_WIDTH, factors.largest - 1).bit_length() if factors.largest > _LEAST_WIDTH else 3
        starts = np.searchsorted(position, np.arange(len(sites) + 1))
        later = np.concatenate([[0], np.cumsum(self.with_summed_out[factor] & (position >= n_summed))])
        is_other = (factors.tables.strides[factor] > 0) & (
            np.arange(factors.tables.scopes.shape[1]) != place[:, np.newaxis]
        )
        at, row_strides, tables = _lay_out(factors, factor, place, 2**bits, scale, dtype)
        blocks = np.cumsum([n_summed, *map(len, factors.layout.blocks)])
        beyond = ((0, 0), (0, 2**bits - factors.largest))
        base = np.pad(self.base[sites], beyond, constant_values=ABSENT)
        return TableGraph(
            (0,) * bits,
            sites.astype(np.int32),
            base.astype(np.float32 if dtype in (np.int16, np.int32) else np.float64),
            in_steps(np.pad(self.fields[sites], beyond), scale, dtype),
            starts.astype(np.int64),
            (starts[1:] - np.diff(later[starts])).astype(np.int64),
            np.concatenate([[0], np.cumsum(is_other.sum(axis=1))]).astype(np.int64),
            factors.tables.scopes[factor][is_other].astype(np.int32),
            row_strides[is_other].astype(np.int32),
            at,
            tables,
            blocks.astype(np.int64),
            scale,
            float(self.reach.max()),
        )


def incidences(factors: FactorField, path: BlockPath) -> Incidences:
    """The factors of a path's target, and what its base leaves of the fields."""
    q, tables = factors.largest, factors.tables
    base = np.full((factors.n_units, q), ABSENT)
    for block, inputs in zip(path.target.unit_blocks, path.base, strict=True):
        for a in range(block.unit.n_states or 0):
            states = np.full(block.size, a, block.unit.dtype)
            base[block.columns, a] = block.unit.log_weight(states, inputs)
    fields = np.zeros((factors.n_units, q))
    single = np.flatnonzero((tables.strides > 0).sum(axis=1) == 1)
    place = (tables.strides[single] > 0).argmax(axis=1)
    sites, strides = tables.scopes[single, place], tables.strides[single, place]
    for a in range(q):
        has = factors.cardinalities[sites] > a
        np.add.at(fields[:, a], sites[has], tables.values[(tables.offsets[single] + a * strides)[has]])
    present = np.arange(q) < factors.cardinalities[:, np.newaxis]
    return Incidences(factors, np.where(present, fields - base, 0.0), base)


def _shapes(factors: FactorField, factor: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int64]:
    """Shapes (factor, place) of tables; places that a factor does not have are one long."""
    tables = factors.tables
    return np.where(tables.strides[factor] > 0, factors.cardinalities[tables.scopes[factor]], 1)


def _lay_out(
    factors: FactorField,
    factor: NDArray[np.int64],
    place: NDArray[np.int64],
    width: int,
    scale: float,
    dtype: np.dtype[Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Where each entry's table begins (entry,), strides of its sites (entry, place), and the tables, in steps.

    A site's own states are side by side; rows follow each other without padding, and a vector that is longer than a
    row reads into the next one. Entries of one shape are laid out together.
    """
    cardinalities = _shapes(factors, factor)
    sizes = cardinalities.prod(axis=1)
    at = np.cumsum(sizes) - sizes
    tables = np.zeros(int(sizes.sum()) + width, dtype)
    row_strides = np.zeros_like(cardinalities)
    shapes = np.concatenate([cardinalities, factors.tables.strides[factor], place[:, np.newaxis]], axis=1)
    kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
    kind = kind.ravel()
    n_places = cardinalities.shape[1]
    for k, shape in enumerate(kinds):
        lengths, strides, own = shape[:n_places], shape[n_places:-1], int(shape[-1])
        axes = [*(p for p in range(n_places) if p != own), own]
        own_strides = np.zeros(n_places, np.int64)
        own_strides[axes] = np.cumprod([1, *lengths[axes][:0:-1]])[::-1]
        places = sum(
            (np.arange(lengths[p]) * strides[p]).reshape([-1 if j == a else 1 for j in range(n_places)])
            for a, p in enumerate(axes)
        )
        places = np.asarray(places).ravel()
        members = np.flatnonzero(kind == k)
        row_strides[members] = own_strides
        step = max(1, _AT_ONCE // places.size)
        for low in range(0, len(members), step):
            part = members[low : low + step]
            values = factors.tables.values[factors.tables.offsets[factor[part], np.newaxis] + places]
            tables[at[part, np.newaxis] + np.arange(places.size)] = in_steps(values, scale, dtype)
    return at.astype(np.int64), row_strides, tables
