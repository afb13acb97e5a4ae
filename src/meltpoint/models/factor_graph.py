"""Factor graphs: variables of any numbers of states, factors of any order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.blocks import Indices
from meltpoint.arguments import public
from meltpoint.errors import InputError
from meltpoint.layers import Potts
from meltpoint.layers.unit import Floats
from meltpoint.models import checks
from meltpoint.models.factors import Factor
from meltpoint.models.graph import GraphModel
from meltpoint.models.model import ParameterArrays

LARGEST_Q = 255
"""Largest number of states of a site, which is kept in one byte."""


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
    file_arrays = ("cardinalities", "orders", "scopes", "values", "hidden")

    factors: tuple[Factor, ...]

    @public
    def __init__(
        self,
        cardinalities: ArrayLike,
        factors: Iterable[tuple[Sequence[int], ArrayLike]],
        hidden: ArrayLike | Iterable[int] | None = None,
    ) -> None:
        counts = check_cardinalities(cardinalities)
        checked = tuple(_check_factor(k, factor, counts) for k, factor in enumerate(factors))
        self._set(factors=checked)
        self._set_sites(counts, Potts(int(counts.max())), hidden)

    def __repr__(self) -> str:
        sizes = "-".join(map(str, self.layer_sizes))
        count = len(self.factors)
        return f"{self.kind} {sizes}, {count} factor{'' if count == 1 else 's'}"

    @property
    def site_factors(self) -> Sequence[Factor]:
        return self.factors

    def arrays(self) -> ParameterArrays:
        scopes = [np.array(scope, np.int64) for scope, _ in self.factors]
        orders = np.array([len(scope) for scope in scopes], np.int64)
        scopes = np.concatenate([np.zeros(0, np.int64), *scopes])
        values = np.concatenate([np.zeros(0), *(table.ravel() for _, table in self.factors)])
        own = (self.cardinalities, orders, scopes, values, self.hidden)
        return dict(zip(self.file_arrays, own, strict=True))

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]], units: Sequence[str] = ()) -> "FactorGraph":
        counts = check_cardinalities(arrays[0])
        orders, scopes = (checks.whole_numbers(arrays[k], name) for k, name in ((1, "orders"), (2, "scopes")))
        parts = checks.split_arrays(scopes, "scopes", [(order,) for order in orders.tolist()])
        if scopes.size and scopes.max() >= counts.size:
            raise InputError(
                found=f"variable {scopes.max()} in scopes",
                expected=f"variables from 0 to {counts.size - 1}",
                remedy="save the model again with meltpoint.save",
            )
        values = checks.split_arrays(
            np.asarray(arrays[3], np.float64), "values", [tuple(counts[part].tolist()) for part in parts]
        )
        factors = [(part.tolist(), table) for part, table in zip(parts, values, strict=True)]
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
    table = checks.real_array(values, name, f"log values of shape {shape}")
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
    checks.finite(
        table,
        name,
        "logarithms of positive values",
        "take np.log of the factor's values, which must not be negative",
    )
    table.flags.writeable = False
    return table


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
