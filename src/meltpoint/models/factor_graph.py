"""Factor graphs: variables of any numbers of states, factors of any order."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.blocks import Indices, Sparse
from meltpoint.errors import InputError
from meltpoint.layers import Potts
from meltpoint.layers.unit import Floats
from meltpoint.models import checks
from meltpoint.models.binary_field import binary_field
from meltpoint.models.factor_field import factor_field
from meltpoint.models.factors import Factor, Factors, number_visible_first
from meltpoint.models.graph import LARGEST_Q, GraphField, GraphModel, hidden_sites
from meltpoint.models.layout import lay_out
from meltpoint.models.model import ParameterArrays


@dataclass(frozen=True, init=False, repr=False, eq=False)
class FactorGraph(GraphModel):
    """A factor graph: log f(x) is the sum of the factors' log values at x, and p ∝ f.

    Parameters
    ----------
    cardinalities
        Number of states (variable,) of each variable, which are 0, 1, …; at most 255.
    factors
        Pairs (scope, log values): the variables that a factor depends on, and the *logarithms* of its values with one
        axis for each of them, in the order of the scope. An empty scope adds a constant.
    hidden
        Numbers of the variables that are not observed, or a mask (variable,).

    Values of zero, whose logarithm is -inf, are refused: chains that redraw single variables may not get from one
    permitted state to another.

    >>> graph = FactorGraph([2, 3], [((0,), [0.0, 1.0]), ((0, 1), [[0, 0, 2.0], [0, 1.0, 0]])])
    >>> graph.log_f([[0, 2], [1, 1]])
    array([2., 2.])
    """

    kind = "FactorGraph"

    variable_cardinalities: Indices
    factors: tuple[Factor, ...]
    hidden: Indices

    def __init__(
        self,
        cardinalities: ArrayLike,
        factors: Iterable[tuple[Sequence[int], ArrayLike]],
        hidden: ArrayLike | Iterable[int] | None = None,
    ) -> None:
        counts = check_cardinalities(cardinalities)
        checked = tuple(_check_factor(k, factor, counts) for k, factor in enumerate(factors))
        hidden = hidden_sites(hidden, counts.size)
        self._set(variable_cardinalities=counts, factors=checked, hidden=hidden)

    def __repr__(self) -> str:
        sizes = "-".join(map(str, self.layer_sizes))
        count = len(self.factors)
        return f"{self.kind} {sizes}, {count} factor{'' if count == 1 else 's'}"

    @property
    def cardinalities(self) -> Indices:
        return self.variable_cardinalities

    @property
    def unit(self) -> Potts:
        return Potts(int(self.cardinalities.max()))

    @cached_property
    def adjacency(self) -> Sparse:  # pyright: ignore[reportIncompatibleMethodOverride]
        return adjacency_of([scope for scope, _ in self.factors], self.cardinalities.size)

    @cached_property
    def mrf(self) -> GraphField:  # pyright: ignore[reportIncompatibleMethodOverride]
        return field_of_factors(self, self.factors)

    def as_factors(self) -> Factors:
        return visible_first(self, self.factors)

    def arrays(self) -> ParameterArrays:
        """Parameters by the names they have in a file: scopes and tables one after the other."""
        scopes = [np.array(scope, np.int64) for scope, _ in self.factors]
        return {
            "cardinalities": self.cardinalities,
            "orders": np.array([len(scope) for scope in scopes], np.int64),
            "scopes": np.concatenate([np.zeros(0, np.int64), *scopes]),
            "values": np.concatenate([np.zeros(0), *(table.ravel() for _, table in self.factors)]),
            "hidden": self.hidden,
        }

    @classmethod
    def array_names(cls, present: set[str]) -> list[str]:
        return ["cardinalities", "orders", "scopes", "values", "hidden"]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "FactorGraph":
        counts = check_cardinalities(arrays[0])
        orders, scopes = (checks.whole_numbers(arrays[k], name) for k, name in ((1, "orders"), (2, "scopes")))
        if (scopes.size and scopes.max() >= counts.size) or scopes.size != orders.sum():
            raise _wrong_sizes("scopes", int(orders.sum()), scopes.size)
        parts = np.split(scopes, np.cumsum(orders)[:-1]) if orders.size else []
        sizes = [float(np.prod(counts[part], dtype=np.float64)) for part in parts]
        values = np.asarray(arrays[3], np.float64)
        if sum(sizes) != values.size or values.ndim != 1:
            raise _wrong_sizes("values", int(sum(sizes)), values.size)
        tables = np.split(values, np.cumsum(np.array(sizes, np.int64))[:-1]) if sizes else []
        factors = [
            (part.tolist(), table.reshape(counts[part])) for part, table in zip(parts, tables, strict=True)
        ]
        return cls(counts, factors, checks.whole_numbers(arrays[4], "hidden"))


def check_cardinalities(cardinalities: ArrayLike) -> Indices:
    """Numbers of states (site,), from 1 to 255."""
    counts = checks.whole_numbers(cardinalities, "cardinalities")
    if counts.size == 0 or counts.min() < 1 or counts.max() > LARGEST_Q:
        raise InputError(
            found=f"cardinalities from {counts.min()} to {counts.max()}" if counts.size else "no variables",
            expected=f"one variable at least, each with 1 to {LARGEST_Q} states",
            remedy="merge states that are hardly ever taken"
            if counts.max(initial=0) > LARGEST_Q
            else "give every variable its number of states",
        )
    return counts


def check_table(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Floats:
    """Log values of a factor as a read-only array of this shape; zeros of the factor itself are refused."""
    try:
        table = np.array(checks.as_array(values, name), np.float64, order="C")
    except InputError:
        raise
    except (TypeError, ValueError) as problem:
        raise InputError(
            found=f"{name} that cannot be read as an array of real numbers",
            expected=f"log values of shape {shape}",
            remedy=f"give every row as many values ({problem})",
        ) from problem
    if table.shape != shape:
        raise InputError(
            found=f"{name} of shape {table.shape}",
            expected=f"{shape}, the numbers of states of its variables in the order of the scope",
            remedy="transpose it if the axes are in another order",
        )
    if np.isneginf(table).any():
        raise InputError(
            found=f"{np.isneginf(table).sum()} values of -inf in {name}: the factor forbids states",
            expected="finite log values, because chains may not get past forbidden states",
            remedy="if the zeros stand for small values, raise them: np.maximum(log_values, log_values.max() - 20); "
            "leave out states of a single variable that are forbidden; for hard constraints use "
            "mp.exact_log_z",
        )
    bad = np.count_nonzero(~np.isfinite(table))
    if bad:
        raise InputError(
            found=f"{bad} NaN or infinite value{'s' if bad > 1 else ''} in {name}",
            expected="logarithms of positive values",
            remedy="take np.log of the factor's values, which must not be negative",
        )
    table.flags.writeable = False
    return table


def adjacency_of(scopes: Sequence[Sequence[int]], n_sites: int) -> Sparse:
    """Which sites (site, site) share a scope."""
    pairs = np.array(
        [pair for scope in scopes for pair in itertools.combinations(scope, 2)], np.int64
    ).reshape(-1, 2)
    ones = np.ones(len(pairs), np.bool_)
    upper = scipy.sparse.coo_array((ones, (pairs[:, 0], pairs[:, 1])), (n_sites, n_sites)).tocsr()
    return scipy.sparse.csr_array(upper + upper.T)


def field_of_factors(model: GraphModel, factors: Sequence[Factor]) -> GraphField:
    """The field of a model's factors: written for bits if all sites have two states and factors are of order 2."""
    counts = model.cardinalities
    hidden = np.zeros(counts.size, np.bool_)
    hidden[model.hidden] = True
    layout = lay_out(model.adjacency, counts, hidden)
    constant = float(sum(table.item() for scope, table in factors if len(scope) == 0))
    factors = [factor for factor in factors if len(factor[0])]
    if (counts == 2).all() and all(len(scope) <= 2 for scope, _ in factors):
        fields, couplings, rest = _for_bits(factors, counts.size)
        return binary_field(layout, fields, couplings, constant + rest)
    return factor_field(layout, counts, factors, constant)


def visible_first(model: GraphModel, factors: Sequence[Factor]) -> Factors:
    """The same factors with scopes in which visible sites come first, and the constant."""
    number = number_visible_first(model.visible, model.hidden)
    counts = model.cardinalities[np.concatenate([model.visible, model.hidden])]
    renumbered = [(tuple(number[list(scope)].tolist()), table) for scope, table in factors if len(scope)]
    constant = float(sum(table.item() for scope, table in factors if len(scope) == 0))
    return tuple(counts.tolist()), renumbered, constant


def _for_bits(factors: Sequence[Factor], n: int) -> tuple[Floats, Sparse, float]:
    """Fields (site,), couplings (site, site) and a constant of the bits' log f."""
    single = [(scope[0], table) for scope, table in factors if len(scope) == 1]
    double = [(scope, table) for scope, table in factors if len(scope) == 2]
    fields, constant = np.zeros(n), 0.0
    tables = np.array([table for _, table in single]).reshape(-1, 2)
    np.add.at(fields, np.array([i for i, _ in single], np.int64), tables[:, 1] - tables[:, 0])
    constant += float(tables[:, 0].sum())
    sites = np.array([scope for scope, _ in double], np.int64).reshape(-1, 2)
    pairs = np.array([table for _, table in double]).reshape(-1, 2, 2)
    np.add.at(fields, sites[:, 0], pairs[:, 1, 0] - pairs[:, 0, 0])
    np.add.at(fields, sites[:, 1], pairs[:, 0, 1] - pairs[:, 0, 0])
    constant += float(pairs[:, 0, 0].sum())
    coupling = pairs[:, 1, 1] - pairs[:, 1, 0] - pairs[:, 0, 1] + pairs[:, 0, 0]
    upper = scipy.sparse.coo_array((coupling, tuple(sites.T)), (n, n)).tocsr()
    return fields, scipy.sparse.csr_array(upper + upper.T), constant


def _check_factor(k: int, factor: tuple[Sequence[int], ArrayLike], counts: Indices) -> Factor:
    name = f"factor {k}"
    if not isinstance(factor, Sequence) or len(factor) != 2:
        raise InputError(
            found=f"{name} that is not a pair",
            expected="(scope, log values)",
            remedy="for example ((0, 2), [[0.0, 1.0], [1.0, 0.0]])",
        )
    scope = checks.whole_numbers(np.atleast_1d(factor[0]), f"the scope of {name}")
    if np.unique(scope).size < scope.size or (scope.size and scope.max() >= counts.size):
        raise InputError(
            found=f"the scope {tuple(scope.tolist())} of {name}",
            expected=f"different variables from 0 to {counts.size - 1}",
            remedy="number variables from 0 on, each at most once in a scope",
        )
    return tuple(scope.tolist()), check_table(factor[1], name, tuple(counts[scope].tolist()))


def _wrong_sizes(name: str, expected: int, found: int) -> InputError:
    return InputError(
        found=f"{found:,} {name}",
        expected=f"{expected:,}, as the other arrays say",
        remedy="save the model again with meltpoint.save",
    )
