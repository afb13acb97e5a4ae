"""Factors of any order over sites of any numbers of states: what the kernels for tables need to know of a field.

    log f(x) = sum over factors of values[offset + sum over the scope of stride · state]

Sites are numbered as the units in arrays (chain, unit) of the Markov random field: those of the state first, those that
are summed out after them.
"""

from dataclasses import dataclass

import numpy as np

from meltpoint.layers.unit import Floats
from meltpoint.models.blocks import Indices
from meltpoint.models.pairwise import Pairwise


@dataclass(frozen=True, eq=False)
class FactorTables:
    """Tables of log values that lie in one array.

    Parameters
    ----------
    cardinalities
        (site,): how many states each site has.
    scopes
        (factor, place): the sites of a factor; places that it does not have are site 0 with stride 0.
    strides
        (factor, place): elements from one state of that site to the next.
    offsets
        (factor,): where a factor's table begins.
    values
        (element,): all tables.
    blocks
        The sites of each block of the state, in the order of a forward sweep; no factor has two sites of a block.
    summed_out
        The sites of the block that is summed out, no two of which share a factor, or None.
    """

    cardinalities: Indices
    scopes: Indices
    strides: Indices
    offsets: Indices
    values: Floats
    blocks: tuple[Indices, ...]
    summed_out: Indices | None = None

    @property
    def n_sites(self) -> int:
        """Number of sites, those that are summed out included."""
        return len(self.cardinalities)

    @property
    def n_state(self) -> int:
        """Number of sites of the state."""
        return self.n_sites - (0 if self.summed_out is None else len(self.summed_out))

    @property
    def largest(self) -> int:
        """The largest number of states."""
        return int(self.cardinalities.max())


def factors_of_pairs(graph: Pairwise) -> FactorTables:
    """The same graph of sites with q states as a list of factors: the fields, then every pair once."""
    q, n = graph.states, graph.n_sites
    once = np.flatnonzero(graph.rows < graph.indices)
    scopes = np.zeros((n + len(once), 2), np.int64)
    strides = np.zeros_like(scopes)
    scopes[:n, 0], strides[:n, 0] = np.arange(n), 1
    scopes[n:, 0], scopes[n:, 1] = graph.rows[once], graph.indices[once]
    strides[n:] = (q, 1)
    offsets = np.concatenate([q * np.arange(n), q * n + q * q * np.arange(len(once))])
    values = np.concatenate([graph.fields.ravel(), graph.couplings[once].ravel()])
    return FactorTables(np.full(n, q), scopes, strides, offsets, values, graph.blocks, graph.summed_out)
