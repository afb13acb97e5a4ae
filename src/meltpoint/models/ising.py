"""Ising models: two-state sites coupled in pairs, on any graph."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.blocks import Indices, Sparse
from meltpoint.arguments import public
from meltpoint.errors import InputError
from meltpoint.layers import TwoState, Unit, unit_named
from meltpoint.layers.unit import Floats
from meltpoint.models import checks
from meltpoint.models.factors import Factor
from meltpoint.models.graph import GraphModel
from meltpoint.models.graph_fields import PairField, pair_field
from meltpoint.models.model import ParameterArrays
from meltpoint.models.readings import Reading, ising_readings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Ising(GraphModel):
    """An Ising model, or Boltzmann machine: log f(x) = ½ x·couplings·x + fields·x + constant, p ∝ f.

    Parameters
    ----------
    couplings
        (site, site), symmetric with a zero diagonal, so that every pair counts once; an array or a `scipy.sparse`
        matrix. A positive coupling favours equal spins; the inverse temperature is in it.
    fields
        (site,); zeros by default.
    units
        "spin" for sites in {-1, +1}, "bernoulli" for sites in {0, 1}.
    hidden
        Numbers of the sites that are not observed, or a mask (site,); data have columns for the other sites, in order.
    constant
        Added to log f: no probability depends on it, log Z does.

    >>> Ising([[0, 0.5], [0.5, 0]], [0, 0]).log_f([[1, 1], [1, -1]])
    array([ 0.5, -0.5])
    >>> Ising(np.ones((3, 3)) - np.eye(3), np.zeros(3), units="bernoulli", hidden=[2])
    Ising 2-1
    """

    kind = "Ising"
    file_arrays = ("fields", "pairs", "couplings", "hidden", "constant")

    couplings: Sparse
    fields: Floats
    unit: TwoState  # pyright: ignore[reportIncompatibleVariableOverride]
    constant: float

    @public
    def __init__(
        self,
        couplings: Any,  # noqa: ANN401
        fields: ArrayLike | None = None,
        units: str | Unit = "spin",
        hidden: ArrayLike | Iterable[int] | None = None,
        *,
        constant: float = 0.0,
    ) -> None:
        unit = unit_named(units)
        matrix = _check_couplings(couplings, unit)
        n = matrix.shape[0]
        h = checks.bias(np.zeros(n) if fields is None else fields, "fields", n, "site")
        self._set(couplings=matrix, fields=h, constant=checks.number(constant, "constant"))
        self._set_sites(np.full(h.size, 2), unit, hidden)

    @property
    def adjacency(self) -> Sparse:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.couplings

    @cached_property
    def mrf(self) -> PairField:  # pyright: ignore[reportIncompatibleMethodOverride]
        scale, offset = self.unit.scale, self.unit.offset
        sums = np.asarray(self.couplings.sum(axis=1))
        constant = self.constant + offset * float(self.fields.sum()) + offset**2 * float(sums.sum()) / 2
        fields = scale * self.fields + scale * offset * sums
        return pair_field(self.layout, fields, self.couplings * scale**2, constant)

    @property
    def site_factors(self) -> list[Factor]:
        values = np.array(self.unit.values)
        rows, columns, data = self._pairs()
        single = np.multiply.outer(self.fields, values)
        double = np.multiply.outer(data, np.multiply.outer(values, values))
        return [
            ((), np.array(self.constant)),
            *(((site,), table) for site, table in enumerate(single)),
            *zip(zip(rows.tolist(), columns.tolist(), strict=True), double, strict=True),
        ]

    def _pairs(self) -> tuple[Indices, Indices, Floats]:
        """Sites i < j (pair,) of each coupled pair, and their couplings (pair,)."""
        upper: Sparse = scipy.sparse.triu(self.couplings, 1, format="coo")
        rows, columns = upper.coords
        return rows.astype(np.int64), columns.astype(np.int64), upper.data

    def other_readings(self) -> Sequence[Reading]:
        return () if self.hidden.size else ising_readings(Ising, self.couplings, self.fields, self.unit.name)

    def arrays(self) -> ParameterArrays:
        rows, columns, data = self._pairs()
        pairs, constant = np.stack([rows, columns], axis=1), np.array([self.constant])
        return dict(zip(self.file_arrays, (self.fields, pairs, data, self.hidden, constant), strict=True))

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "Ising":
        fields, pairs, couplings, hidden, constant = arrays
        n = len(fields)
        pairs = checks.pairs(pairs, n, len(couplings))
        upper = scipy.sparse.coo_array((np.asarray(couplings, np.float64), tuple(pairs.T)), (n, n))
        return cls(
            upper + upper.T,
            fields,
            units[0] if units else "bernoulli",
            checks.whole_numbers(hidden, "hidden"),
            constant=checks.number(constant, "constant"),
        )


def _check_couplings(couplings: Any, unit: TwoState) -> Sparse:  # noqa: ANN401
    """A symmetric sparse matrix with a zero diagonal, or an error that says how to make it one."""
    if scipy.sparse.issparse(couplings):
        matrix: Sparse = scipy.sparse.csr_array(couplings, dtype=np.float64)
        matrix.sum_duplicates()
        checks.finite(matrix.data, "couplings")
    else:
        matrix = scipy.sparse.csr_array(checks.parameter(couplings, "couplings", 2))
    n, m = matrix.shape
    if n != m or n == 0:
        raise InputError(
            found=f"couplings of shape {matrix.shape}",
            expected="a square matrix (site, site)",
            remedy="for units on two sides use mp.RBM, whose weights are (visible, hidden)",
        )
    diagonal = np.flatnonzero(matrix.diagonal())
    if len(diagonal):
        raise InputError(
            found=f"couplings with {len(diagonal)} nonzero values on the diagonal",
            expected="a zero diagonal: no site is coupled to itself",
            remedy="set it to zero: the square of a spin is 1, so that it adds only a constant"
            if unit.offset
            else "set it to zero and add half of it to the fields, because the square of 0 or 1 is itself",
        )
    one_sided = min(scipy.sparse.tril(matrix).nnz, scipy.sparse.triu(matrix).nnz) == 0
    checks.symmetric(abs(matrix - matrix.T).max(), abs(matrix).max(), one_sided, "J[j, i]", "J.T")
    matrix = scipy.sparse.csr_array((matrix + matrix.T) / 2)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
