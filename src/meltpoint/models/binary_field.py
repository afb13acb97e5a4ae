"""Two-state units coupled in pairs, on any graph: the field of Ising models and of binary pairwise factor graphs.

Everything is written for bits: log f = fields·b + ½ b·couplings·b, and a constant.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Indices, Sparse, UnitBlock
from meltpoint.layers import BERNOULLI
from meltpoint.layers.unit import Floats, Unit
from meltpoint.models.layout import Layout, LayoutField


@dataclass(frozen=True, eq=False)
class BinaryField(LayoutField):
    """Fields (unit,) and couplings (unit, unit) of bits, in the columns of a layout.

    The matrix is symmetric and sparse, its diagonal is zero, and each pair counts once.
    """

    fields: Floats
    couplings: Sparse
    log_constant: float = 0.0

    def unit_of(self, columns: Indices) -> Unit:
        return BERNOULLI

    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        """Log odds (chain, unit of the block) of bit 1 given all other units (chain, unit)."""
        # A sparse product adds in the same order however many chains there are.
        return np.asarray((self._rows[id(block)] @ _columns_of(units)).T) + self.fields[block.columns]

    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        """Fields and couplings (chain,) among the units of the state."""
        return self._log_f(units, self.n_state)

    def log_f_of_all(self, units: NDArray[Any]) -> Floats:
        """Log f (chain,) of all units, nothing summed out, without the constant."""
        return self._log_f(units, self.n_units)

    @cached_property
    def _rows(self) -> dict[int, Sparse]:
        """The rows of the coupling matrix that each block needs."""
        return {id(block): self.couplings[block.columns] for block in self.unit_blocks}

    def _log_f(self, units: NDArray[Any], n: int) -> Floats:
        couplings = self.couplings if n == self.n_units else self._among_state
        inputs = np.ascontiguousarray((couplings @ _columns_of(units[:, :n])).T) / 2 + self.fields[:n]
        return (units[:, :n] * inputs).sum(axis=1)

    @cached_property
    def _among_state(self) -> Sparse:
        return scipy.sparse.csr_array(self.couplings[: self.n_state, : self.n_state])


def binary_field(layout: Layout, fields: Floats, couplings: Sparse, log_constant: float) -> BinaryField:
    """The field of bits whose fields (site,) and symmetric couplings (site, site) are given by sites."""
    order = layout.order
    matrix = scipy.sparse.csr_array(couplings[order][:, order])
    matrix.sort_indices()
    return BinaryField(layout, fields[order], matrix, log_constant)


def _columns_of(units: NDArray[Any]) -> Floats:
    """(unit, chain) for a sparse product from the left."""
    return np.ascontiguousarray(units.T, np.float64)
