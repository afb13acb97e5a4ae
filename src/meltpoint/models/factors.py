"""A model as a list of factors: the form in which variables can be eliminated, whatever the model is."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from meltpoint.annealing.blocks import Indices
from meltpoint.errors import InputError
from meltpoint.layers import two_state
from meltpoint.layers.unit import Floats, Unit

Factor: TypeAlias = tuple[tuple[int, ...], Floats]
"""The variables a factor depends on, and the logarithms of its values with one axis for each of them."""

Factors: TypeAlias = tuple[tuple[int, ...], list[Factor], float]
"""Cardinalities of all variables, factors, and a constant: log f is the constant and all factors' values, added up."""


def layered_factors(weights: Sequence[Floats], biases: Sequence[Floats], units: Sequence[Unit]) -> Factors:
    """Factors of layers of units, lowest first: one for every bias, and one for every weight that is not 0."""
    values = [np.array(unit.values) for unit in two_state(units)]
    first = np.cumsum([0, *(bias.size for bias in biases)])
    factors: list[Factor] = [
        ((int(first[k]) + i,), value * values[k])
        for k, bias in enumerate(biases)
        for i, value in enumerate(bias.tolist())
    ]
    for k, matrix in enumerate(weights):
        pair = np.multiply.outer(values[k], values[k + 1])
        rows, columns = np.nonzero(matrix)
        scopes = zip((first[k] + rows).tolist(), (first[k + 1] + columns).tolist(), strict=True)
        factors += zip(scopes, np.multiply.outer(matrix[rows, columns], pair), strict=True)
    cardinalities = tuple(
        len(own) for own, bias in zip(values, biases, strict=True) for _ in range(bias.size)
    )
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


def potts_layer_factors(
    weights: Floats, visible_bias: Floats, hidden_bias: Floats, hidden_values: Floats
) -> Factors:
    """Factors of Potts units (site, state) below two-state units of these values, weights (site, state, hidden)."""
    sites, states, hidden = weights.shape
    factors: list[Factor] = [((i,), bias) for i, bias in enumerate(visible_bias)]
    factors += [((sites + j,), bias * hidden_values) for j, bias in enumerate(hidden_bias.tolist())]
    factors += [
        ((i, sites + j), np.multiply.outer(weights[i, :, j], hidden_values))
        for i in range(sites)
        for j in range(hidden)
    ]
    return (states,) * sites + (len(hidden_values),) * hidden, factors, 0.0


def number_visible_first(visible: Indices, hidden: Indices) -> Indices:
    """The number (site,) of each site where visible ones come first."""
    order = np.concatenate([visible, hidden])
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return number
