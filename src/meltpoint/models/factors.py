"""A model as a list of factors: the form in which variables can be eliminated, whatever the model is."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from meltpoint.units.unit import Floats, Unit

Factor: TypeAlias = tuple[tuple[int, ...], Floats]
"""The variables a factor depends on, and the logarithms of its values with one axis for each of them."""

Factors: TypeAlias = tuple[tuple[int, ...], list[Factor], float]
"""Cardinalities of all variables, factors, and a constant: log f is the constant and all factors' values, added up."""


def layered_factors(weights: Sequence[Floats], biases: Sequence[Floats], units: Sequence[Unit]) -> Factors:
    """Factors of layers of units, lowest first: one for every bias, and one for every weight that is not 0."""
    values = [np.array(unit.values) for unit in units]
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
