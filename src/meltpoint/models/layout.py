"""Where the sites of a graph lie in arrays (chain, unit), which of them are redrawn together, and which are summed out.

Visible sites come first, in the user's order, then hidden ones; those that are summed out come last. Where one colour
of an all-visible graph is summed out, visible sites are on both sides.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Indices, Sparse, UnitBlock
from meltpoint.annealing.field import MarkovRandomField
from meltpoint.layers.unit import Unit
from meltpoint.models.colouring import colour_classes, colour_of_component, two_colours


@dataclass(frozen=True, eq=False)
class Layout:
    """The site in each column (unit,), and the columns of each block of the state in the order of a sweep.

    Columns from `n_state` on are summed out. The first `n_visible` columns are the visible sites in their own order,
    unless `visible_summed_out`: then no site is hidden, and the state is one colour.
    """

    order: Indices
    n_state: int
    blocks: tuple[Indices, ...]
    visible_summed_out: bool

    @property
    def n_units(self) -> int:
        return len(self.order)

    @property
    def column(self) -> Indices:
        """The column (site,) of each site."""
        column = np.empty_like(self.order)
        column[self.order] = np.arange(len(self.order))
        return column


@dataclass(frozen=True, eq=False)
class LayoutField(MarkovRandomField):
    """A Markov random field whose blocks are those of a layout."""

    layout: Layout

    @abstractmethod
    def unit_of(self, columns: Indices) -> Unit:
        """The unit that all these columns have."""

    @cached_property
    def state_blocks(self) -> tuple[UnitBlock, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return tuple(self._block(columns) for columns in self.layout.blocks)

    @cached_property
    def summed_out(self) -> UnitBlock | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        columns = np.arange(self.n_state, self.n_units)
        return self._block(columns) if len(columns) else None

    def _block(self, columns: Indices) -> UnitBlock:
        return UnitBlock(self.unit_of(columns), columns, (len(columns),))

    @property
    def n_state(self) -> int:
        return self.layout.n_state

    @property
    def n_units(self) -> int:
        return self.layout.n_units


def lay_out(
    adjacency: Sparse,
    cardinalities: NDArray[np.integer],
    hidden: NDArray[np.bool_],
    *,
    sum_out: bool = True,
) -> Layout:
    """The layout of a graph whose sites have so many states (site,) and are hidden or not (site,).

    The sites of a block have one number of states. `sum_out=False` keeps every site in the state.
    """
    summed_out = choose_summed_out(adjacency, cardinalities, hidden) if sum_out else np.zeros_like(hidden)
    kept = ~summed_out
    order = np.concatenate([np.flatnonzero(part) for part in (kept & ~hidden, kept & hidden, summed_out)])
    n_state = int(kept.sum())
    state = order[:n_state]
    blocks = [
        columns[cardinalities[state[columns]] == q]
        for columns in colour_classes(scipy.sparse.csr_array(adjacency[state][:, state]))
        for q in np.unique(cardinalities[state[columns]])
    ]
    return Layout(order, n_state, tuple(blocks), bool((summed_out & ~hidden).any()))


def choose_summed_out(
    adjacency: Sparse, cardinalities: NDArray[np.integer], hidden: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which sites (site,) are summed out: none, or an independent set of sites with one number of states.

    All visible, two colours: the larger colour of each component. With hidden sites only those may be summed out: all
    of them if they are not coupled, then log f is exact; the colour without visible sites if there are two; else the
    largest of their colour classes. docs/decisions/graphs.md has the speed that this gains.
    """
    two = two_colours(adjacency)
    if not hidden.any():
        if two is None or np.unique(cardinalities).size > 1:
            return np.zeros_like(hidden)
        summed_out = colour_of_component(*two, weights=np.ones(len(hidden)))
        if summed_out.all():  # no pair is coupled, and a chain needs something to move
            summed_out[0] = False
        return summed_out
    own = np.flatnonzero(hidden)
    inside = scipy.sparse.csr_array(adjacency[own][:, own])
    if inside.nnz == 0:
        candidates = [own]
    elif two is not None:
        # Hidden sites of the colour with fewer visible ones: if it has none, the state is one block.
        candidates = [np.flatnonzero(hidden & ~colour_of_component(*two, weights=(~hidden).astype(float)))]
    else:
        candidates = [own[sites] for sites in colour_classes(inside)]
    sets = [sites[cardinalities[sites] == q] for sites in candidates for q in np.unique(cardinalities[sites])]
    summed_out = np.zeros_like(hidden)
    if sets:
        summed_out[max(sets, key=len)] = True
    return summed_out
