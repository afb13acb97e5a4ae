"""Colours of a graph's sites: sites of one colour are not coupled, so that they can be redrawn together.

Adjacency matrices (site, site) are sparse and symmetric, with a zero diagonal. No loop runs over sites: a lattice of a
million sites takes a second.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Indices, Sparse

_DENSE = 0.5  # share of coupled pairs from which on single sites are redrawn: few share a colour


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
