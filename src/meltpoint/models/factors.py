"""A model as a list of factors: the form in which variables can be eliminated, whatever the model is."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from meltpoint.errors import InputError
from meltpoint.layers.unit import Floats, Unit

Factor: TypeAlias = tuple[tuple[int, ...], Floats]
"""The variables a factor depends on, and the logarithms of its values with one axis for each of them."""

Factors: TypeAlias = tuple[tuple[int, ...], list[Factor], float]
"""Cardinalities of all variables, factors, and a constant: log f is the constant and all factors' values, added up."""


def layered_factors(weights: Sequence[Floats], biases: Sequence[Floats], units: Sequence[Unit]) -> Factors:
    """Factors of layers of units, lowest first: one for every bias, and one for every pair whose weights are not 0.

    Weights are those of the numbers that units are coupled by, (lower, upper) or with axes of states behind each.
    """
    states = [np.arange(unit.n_states or 0, dtype=unit.dtype)[:, np.newaxis] for unit in units]
    sizes = [len(bias) for bias in biases]
    first = np.cumsum([0, *sizes])
    factors: list[Factor] = []
    for k, (unit, bias) in enumerate(zip(units, biases, strict=True)):
        tables = unit.log_weight(np.repeat(states[k], sizes[k], axis=1), bias).T
        factors += [((int(first[k]) + i,), table) for i, table in enumerate(tables)]
    numbers = [unit.coupled(own) for unit, own in zip(units, states, strict=True)]  # (state, number)
    for k, matrix in enumerate(weights):
        pairs = matrix.reshape(sizes[k], units[k].n_coupled, sizes[k + 1], units[k + 1].n_coupled)
        rows, columns = np.nonzero((pairs != 0).any(axis=(1, 3)))
        scopes = zip((first[k] + rows).tolist(), (first[k + 1] + columns).tolist(), strict=True)
        tables = np.einsum("ac,pcd,bd->pab", numbers[k], pairs[rows, :, columns], numbers[k + 1])
        factors += zip(scopes, tables, strict=True)
    cardinalities = tuple(len(own) for own, size in zip(states, sizes, strict=True) for _ in range(size))
    return cardinalities, factors, 0.0


def condition(factors: Factors, clamped: Mapping[int, int]) -> Factors:
    """The factors of the same units without those that are clamped to a state, which are renumbered in their order.

    Z of what is left is the sum of f over all states that agree with the clamped ones.

    >>> condition(((2, 3), [((0, 1), np.arange(6.0).reshape(2, 3))], 0.0), {0: 1})
    ((3,), [((0,), array([3., 4., 5.]))], 0.0)
    """
    cardinalities, tables, constant = factors
    for unit, state in clamped.items():
        if not 0 <= unit < len(cardinalities) or not 0 <= state < cardinalities[unit]:
            raise InputError(
                found=f"unit {unit} clamped to state {state}",
                expected=f"units 0 to {len(cardinalities) - 1} and states below their number of states",
                remedy="units and states count from 0",
            )
    left = [unit for unit in range(len(cardinalities)) if unit not in clamped]
    number = {unit: k for k, unit in enumerate(left)}
    conditioned: list[Factor] = []
    for scope, table in tables:
        part = np.asarray(table)[tuple(clamped.get(unit, slice(None)) for unit in scope)]
        free = tuple(number[unit] for unit in scope if unit not in clamped)
        if free:
            conditioned.append((free, part))
        else:
            constant += float(part)
    return tuple(cardinalities[unit] for unit in left), conditioned, constant
