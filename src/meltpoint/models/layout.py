"""Where the sites of a graph lie in arrays (chain, unit), which of them are redrawn together, and which are summed out.

Visible sites come first, in the user's order, then hidden ones; those that are summed out come last. Where one colour
of an all-visible graph is summed out, visible sites are on both sides. Sites of one colour are not coupled, so that
they can be redrawn together.

Adjacency matrices (site, site) are sparse and symmetric, with a zero diagonal. No loop runs over sites: a lattice of a
million sites takes a second.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Indices, Sparse

_DENSE = 0.5  # share of coupled pairs from which on single sites are redrawn: few share a colour


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
    def column(self) -> Indices:
        """The column (site,) of each site."""
        return np.argsort(self.order)


def lay_out(
    adjacency: Sparse,
    cardinalities: NDArray[np.integer],
    hidden: NDArray[np.bool_],
) -> Layout:
    """The layout of a graph whose sites have these numbers of states (site,) and are hidden or not (site,).

    The sites of a block have one number of states.
    """
    summed_out = choose_summed_out(adjacency, cardinalities, hidden)
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


def two_colours(adjacency: Sparse) -> tuple[NDArray[np.bool_], Indices] | None:
    """Colour (site,) and connected component (site,) of a graph whose sites need two colours; None if they need more.

    In the double cover, where (i, 0) is joined to (j, 1) and (i, 1) to (j, 0), the two copies of a site are connected
    just if the site lies on an odd cycle.

    >>> ring = scipy.sparse.csr_array(np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1))
    >>> two_colours(ring)[0]
    array([False,  True, False,  True])
    """
    from scipy.sparse.csgraph import connected_components  # a tenth of a second, which RBMs need not pay

    n = adjacency.shape[0]
    cover = scipy.sparse.block_array([[None, adjacency], [adjacency, None]], format="csr")
    _, labels = connected_components(cover, directed=False)
    first, second = labels[:n], labels[n:]
    if (first == second).any():
        return None
    return first > second, np.minimum(first, second)


def colour_classes(adjacency: Sparse) -> list[Indices]:
    """Sites of every colour: two colours if that is enough, few by a greedy rule, single sites in a dense graph."""
    n = adjacency.shape[0]
    if adjacency.nnz > _DENSE * n * (n - 1):
        return list(np.arange(n)[:, np.newaxis])
    two = two_colours(adjacency)
    colour = two[0].astype(np.int64) if two is not None else _greedy(adjacency)
    classes = [np.flatnonzero(colour == k) for k in range(int(colour.max(initial=0)) + 1)]
    return [sites for sites in classes if sites.size]


def colour_of_component(
    colour: NDArray[np.bool_], component: Indices, weights: NDArray[np.number]
) -> NDArray[np.bool_]:
    """In each component the colour (site,) of the larger total weight (site,) of its sites; the first one in a tie."""
    excess = np.bincount(component, np.where(colour, weights, -weights))
    return colour == (excess[component] > 0)


def _greedy(adjacency: Sparse) -> Indices:
    """Colour (site,): sites with many neighbours first, each with the first colour that its neighbours lack.

    All sites whose neighbours before them in this order have their colour are coloured at once; no two of them are
    neighbours (Jones and Plassmann 1993).
    """
    n = adjacency.shape[0]
    degree = np.diff(adjacency.indptr)
    rank = np.empty(n, np.int64)
    # Ties are broken at random, by fixed numbers: in the order of sites a lattice would be coloured one by one.
    rank[np.lexsort((np.random.default_rng(0).permutation(n), -degree))] = np.arange(n)
    pairs = adjacency.tocoo()
    after = rank[pairs.row] < rank[pairs.col]
    followers = scipy.sparse.csr_array(
        (np.ones(int(after.sum()), np.int8), (pairs.row[after], pairs.col[after])), (n, n)
    )
    waiting = np.bincount(pairs.col[after], minlength=n)
    colour = np.full(n, -1)
    ready = np.flatnonzero(waiting == 0)
    while ready.size:
        colour[ready] = _first_free(adjacency[ready], colour)
        released = followers[ready].indices
        np.subtract.at(waiting, released, 1)
        ready = np.unique(released[waiting[released] == 0])
    return colour


def _first_free(rows: Sparse, colour: Indices) -> Indices:
    """The first colour (row,) that none of a row's neighbours has; -1 is no colour."""
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    taken = colour[rows.indices]
    used = np.zeros((rows.shape[0], int(colour.max(initial=0)) + 2), np.bool_)
    used[owner[taken >= 0], taken[taken >= 0]] = True
    return np.argmin(used, axis=1)
