"""A graph of sites with one number of states, coupled in pairs: what the kernels for graphs need to know of a field.

    log f(x) = sum_i fields_i(x_i) + sum_{i<j} couplings_ij(x_i, x_j)

Sites are numbered as the units in arrays (chain, unit) of the Markov random field: those of the state first, those that
are summed out after them. Sites with two states are written for their bits, fields (site,) and couplings (entry,):
a field and a coupling count where the bits are one, and state 0 of all sites has log f = 0. Sites with q states have
fields (site, q) and couplings (entry, q, q), whose first state is that of the site whose row it is.
"""

from dataclasses import dataclass

import numpy as np

from meltpoint.errors import InputError
from meltpoint.layers.unit import Floats
from meltpoint.models.blocks import Indices


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Fields of sites, and couplings by rows of neighbours (CSR, each pair in both directions), checked.

    Parameters
    ----------
    states
        How many states each site has.
    fields
        (site,) for the bits of two states, (site, state) otherwise.
    indptr
        (site + 1,): the entries of site i are indptr[i] … indptr[i + 1] - 1.
    indices
        (entry,): the neighbour that an entry couples the site to, ascending in each row.
    couplings
        (entry,) or (entry, own state, neighbour's state).
    blocks
        The sites of each block of the state, in the order of a forward sweep; those of a block are not coupled.
    summed_out
        The sites of the block that is summed out, which are not coupled, or None.
    """

    states: int
    fields: Floats
    indptr: Indices
    indices: Indices
    couplings: Floats
    blocks: tuple[Indices, ...]
    summed_out: Indices | None = None

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_rows(self)
        _check_symmetry(self)
        _check_blocks(self)

    @property
    def n_sites(self) -> int:
        """Number of sites, those that are summed out included."""
        return len(self.fields)

    @property
    def n_state(self) -> int:
        """Number of sites of the state."""
        return self.n_sites - (0 if self.summed_out is None else len(self.summed_out))

    @property
    def rows(self) -> Indices:
        """The site (entry,) whose row an entry is in."""
        return np.repeat(np.arange(self.n_sites), np.diff(self.indptr))


def _refuse(found: str, expected: str) -> InputError:
    return InputError(
        found=found, expected=expected, remedy="build the graph with mp.Ising or mp.Potts, which lay it out"
    )


def _check_shapes(graph: Pairwise) -> None:
    n, entries, q = len(graph.fields), len(graph.indices), graph.states
    of_bits = graph.fields.ndim == 1
    if q < 2 or (of_bits and q != 2):
        raise _refuse(f"{q} states and fields of shape {graph.fields.shape}", "fields (site, state)")
    fields, couplings = ((n,), (entries,)) if of_bits else ((n, q), (entries, q, q))
    if graph.fields.shape != fields or graph.couplings.shape != couplings or graph.indptr.shape != (n + 1,):
        raise _refuse(
            f"fields {graph.fields.shape}, couplings {graph.couplings.shape} and indptr {graph.indptr.shape}",
            f"{fields}, {couplings} and {(n + 1,)}",
        )
    if not (np.isfinite(graph.fields).all() and np.isfinite(graph.couplings).all()):
        raise _refuse("NaN or infinite fields or couplings", "finite numbers")


def _check_rows(graph: Pairwise) -> None:
    n, entries = graph.n_sites, len(graph.indices)
    bounds = graph.indptr[0] == 0 and graph.indptr[-1] == entries and (np.diff(graph.indptr) >= 0).all()
    if not bounds or (entries and not (graph.indices.min() >= 0 and graph.indices.max() < n)):
        raise _refuse("rows or neighbours out of range", f"{n} rows that cover {entries} entries")
    rows = graph.rows
    if (rows == graph.indices).any():
        raise _refuse("a site coupled to itself", "a zero diagonal")
    if (np.diff(graph.indices)[np.diff(rows) == 0] <= 0).any():
        raise _refuse("neighbours that are not in ascending order", "sorted rows without duplicates")


def _check_symmetry(graph: Pairwise) -> None:
    rows, columns = graph.rows, graph.indices
    other = np.lexsort((rows, columns))  # the entries by column, then by row: the transposed matrix in CSR
    same_places = np.array_equal(columns[other], rows) and np.array_equal(rows[other], columns)
    transposed = graph.couplings.swapaxes(1, 2) if graph.couplings.ndim > 1 else graph.couplings
    if not same_places or not np.array_equal(transposed[other], graph.couplings):
        raise _refuse("couplings that differ in the two directions", "each pair in both rows, with one value")


def _check_blocks(graph: Pairwise) -> None:
    summed_out = () if graph.summed_out is None else (graph.summed_out,)
    block_of = np.full(graph.n_sites, -1)
    for k, sites in enumerate((*graph.blocks, *summed_out)):
        if (block_of[sites] != -1).any() or np.unique(sites).size != len(sites):
            raise _refuse("a site in two blocks", "blocks that share no site")
        block_of[sites] = k
    if (block_of == -1).any():
        raise _refuse("a site in no block", "blocks that cover all sites")
    if graph.summed_out is not None and (block_of[: graph.n_state] == len(graph.blocks)).any():
        raise _refuse("a site that is summed out before one that is not", "the sites of the state first")
    if (block_of[graph.rows] == block_of[graph.indices]).any():
        raise _refuse("two coupled sites in one block", "blocks of sites that are not coupled")
