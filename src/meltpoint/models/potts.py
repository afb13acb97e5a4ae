"""Potts models: sites of q states coupled in pairs, such as those of protein and RNA families."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint import layers
from meltpoint.annealing.blocks import Indices
from meltpoint.arguments import public, read
from meltpoint.errors import InputError
from meltpoint.layers.unit import Floats
from meltpoint.models import checks
from meltpoint.models.factor_graph import check_cardinalities, check_table
from meltpoint.models.factors import Factor
from meltpoint.models.graph import GraphModel
from meltpoint.models.model import ParameterArrays
from meltpoint.models.readings import Reading, potts_readings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Potts(GraphModel):
    """A Potts model: log f(x) = sum_i fields[i][x_i] + sum over pairs i < j of couplings[i, j][x_i, x_j] + constant.

    p ∝ f: couplings and fields have a plus sign, as in most programs for protein families. The gauge is free: it
    changes log f and log Z together, and no probability.

    Parameters
    ----------
    couplings
        (site, site, q, q) with couplings[i, j, a, b] = couplings[j, i, b, a] and zeros for i = j; or a dict with
        (q_i, q_j) arrays for those pairs (i, j) that are coupled, each pair once.
    fields
        (site, q), or a list with one vector for each site if sites have different numbers of states.
    hidden
        Numbers of the sites that are not observed, or a mask (site,).
    constant
        Added to log f: no probability depends on it, log Z does.

    >>> model = Potts({(0, 1): [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]}, np.zeros((2, 3)))
    >>> model, model.log_f([[2, 2], [0, 1]])
    (Potts 2, q = 3, array([1., 0.]))
    """

    kind = "Potts"
    file_arrays = ("cardinalities", "fields", "pairs", "couplings", "hidden", "constant")

    fields: tuple[Floats, ...]
    pairs: Indices
    couplings: tuple[Floats, ...]
    constant: float

    @public
    def __init__(
        self,
        couplings: ArrayLike | Mapping[tuple[int, int], ArrayLike],
        fields: ArrayLike | Sequence[ArrayLike],
        hidden: ArrayLike | Iterable[int] | None = None,
        *,
        constant: float = 0.0,
    ) -> None:
        h = _check_fields(fields)
        counts = np.array([field.size for field in h])
        if isinstance(couplings, Mapping):
            pairs, tables = _check_mapping(couplings, counts)
        else:
            pairs, tables = _check_dense(couplings, counts)
        self._set(fields=h, pairs=pairs, couplings=tables, constant=checks.number(constant, "constant"))
        self._set_sites(counts, layers.Potts(int(counts.max())), hidden)

    def __repr__(self) -> str:
        sizes, counts = "-".join(map(str, self.layer_sizes)), np.unique(self.cardinalities)
        states = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        return f"{self.kind} {sizes}, q = {states}"

    @property
    def site_factors(self) -> list[Factor]:
        scopes = map(tuple, self.pairs.tolist())
        return [
            ((), np.array(self.constant)),
            *(((i,), field) for i, field in enumerate(self.fields)),
            *zip(scopes, self.couplings, strict=True),
        ]

    def other_readings(self) -> Sequence[Reading]:
        if self.hidden.size or np.ptp(self.cardinalities):
            return ()
        return potts_readings(int(self.cardinalities[0]))

    def arrays(self) -> ParameterArrays:
        couplings = np.concatenate([np.zeros(0), *(table.ravel() for table in self.couplings)])
        fields, constant = np.concatenate(self.fields), np.array([self.constant])
        own = (self.cardinalities, fields, self.pairs, couplings, self.hidden, constant)
        return dict(zip(self.file_arrays, own, strict=True))

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "Potts":
        counts = check_cardinalities(arrays[0])
        pairs = checks.pairs(arrays[2], counts.size, len(arrays[2]))
        fields, couplings = (np.asarray(arrays[k], np.float64) for k in (1, 3))
        shapes = list(map(tuple, counts[pairs].tolist()))
        tables = checks.split_arrays(couplings, "couplings", shapes)
        return cls(
            dict(zip(map(tuple, pairs.tolist()), tables, strict=True)),
            checks.split_arrays(fields, "fields", [(count,) for count in counts.tolist()]),
            checks.whole_numbers(arrays[4], "hidden"),
            constant=checks.number(arrays[5], "constant"),
        )


def _check_fields(fields: ArrayLike | Sequence[ArrayLike]) -> tuple[Floats, ...]:
    """One vector (state,) of fields for each site, with two states at least."""
    if isinstance(fields, np.ndarray) and fields.ndim != 2:
        raise InputError(
            found=f"fields of shape {fields.shape}",
            expected="(site, state), or a list of vectors",
            remedy="for two states and one field each use mp.Ising",
        )
    vectors = read(Sequence[Any], fields, "fields")
    checked = tuple(checks.parameter(field, f"fields[{i}]", 1) for i, field in enumerate(vectors))
    check_cardinalities([field.size for field in checked])
    single = [i for i, field in enumerate(checked) if field.size == 1]
    if single:
        raise InputError(
            found=f"one state at site {single[0]}",
            expected="two states at least",
            remedy="leave the site out, and add its couplings to the fields of the others",
        )
    return checked


def _check_mapping(
    couplings: Mapping[tuple[int, int], ArrayLike], counts: Indices
) -> tuple[Indices, tuple[Floats, ...]]:
    """Pairs (pair, 2) with i < j, in order, and their tables."""
    try:
        given = np.array(list(couplings), np.int64).reshape(-1, 2)
    except (TypeError, ValueError) as problem:
        raise InputError(
            found="couplings whose keys are not pairs of sites",
            expected="keys (i, j)",
            remedy="for example {(0, 1): array of shape (q, q)}",
        ) from problem
    pairs = checks.pairs(given, counts.size, len(couplings))
    swapped = pairs[:, 0] > pairs[:, 1]
    tables = []
    for (i, j), table, swap in zip(pairs.tolist(), couplings.values(), swapped, strict=True):
        own = check_table(table, f"couplings[{i}, {j}]", (int(counts[i]), int(counts[j])))
        tables.append(np.ascontiguousarray(own.T) if swap else own)
    pairs = np.sort(pairs, axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return pairs[order], tuple(tables[k] for k in order)


def _check_dense(couplings: ArrayLike, counts: Indices) -> tuple[Indices, tuple[Floats, ...]]:
    """The same from an array (site, site, q, q); pairs without any coupling are left out."""
    array = checks.parameter(couplings, "couplings", 4)
    n, q = counts.size, int(counts[0])
    if array.shape != (n, n, q, q) or (counts != q).any():
        raise InputError(
            found=f"couplings of shape {array.shape} with fields of {n} sites",
            expected=f"{(n, n, q, q)}"
            if (counts == q).all()
            else "a dict {(i, j): (q_i, q_j)}, as sites have different numbers of states",
            remedy="the axes are (site, site, state, state)",
        )
    other = array.transpose(1, 0, 3, 2)
    coupled = (array != 0).any(axis=(2, 3))
    if coupled.diagonal().any():
        raise InputError(
            found=f"couplings of site {np.flatnonzero(coupled.diagonal())[0]} with itself",
            expected="zeros in couplings[i, i]",
            remedy="add the diagonal of couplings[i, i], halved if log f has ½, to fields[i], and set it to zero",
        )
    one_sided = not np.tril(coupled).any() or not np.triu(coupled).any()
    largest, transposed = np.abs(array).max(), "J.transpose(1, 0, 3, 2)"
    checks.symmetric(np.abs(array - other).max(), largest, one_sided, "J[j, i, b, a]", transposed)
    pairs = np.argwhere(np.triu(coupled | coupled.T, 1))
    tables = (array[pairs[:, 0], pairs[:, 1]] + other[pairs[:, 0], pairs[:, 1]]) / 2
    tables.flags.writeable = False
    return pairs, tuple(tables)
