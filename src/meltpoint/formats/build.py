"""Models from what the readers found: the one place where readers of files call constructors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from meltpoint import models
from meltpoint.errors import InputError
from meltpoint.formats.format import Options
from meltpoint.formats.source import Source
from meltpoint.layers.unit import Floats
from meltpoint.models import Model

_UNITS = 100_000  # units that any file may have, however small the file
Pairs = dict[tuple[int, int], Floats]
"""Couplings (state of i, state of j) by pairs i < j."""


def rbm(
    source: Source,
    weights: NDArray[Any],
    visible_bias: NDArray[Any],
    hidden_bias: NDArray[Any],
    **units: Any,  # noqa: ANN401
) -> Model:
    """An RBM; Potts visible units where the weights have three axes (site, state, hidden)."""
    if weights.ndim == 3:
        units = {"visible": "potts"} | units
    with checked(source, max(weights.shape, default=0)):
        return models.RBM(_floats(weights), _floats(visible_bias), _floats(hidden_bias), **units)


def ising(
    source: Source,
    n: int,
    pairs: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    fields: NDArray[Any],
    units: str,
    constant: float = 0.0,
) -> Model:
    """An Ising model of n units with couplings (i, j, value); pairs that occur twice are summed."""
    i, j, values = pairs
    with checked(source, n):
        if i.size and not (min(i.min(), j.min()) >= 0 and max(i.max(), j.max()) < n and (i != j).all()):
            raise ValueError("a coupling of a unit with itself, or with one that is not there")
        one_way = scipy.sparse.coo_array((_floats(values), (i, j)), shape=(n, n)).tocsr()
        return models.Ising(one_way + one_way.T, _floats(fields), units=units, constant=constant)


def potts(
    source: Source,
    pairs: Pairs,
    fields: NDArray[Any],
    options: Options,
    stored: str = "",
    wanted: str | None = None,
) -> Model:
    """A Potts model with fields (site, state), in the gauge that was asked for.

    If the file has its states in the order of the letters `stored`, they are reordered to `wanted`.
    """
    fields, constant = _floats(fields), 0.0
    if wanted is not None and wanted != stored:
        if sorted(wanted) != sorted(stored):
            raise InputError(
                found=f"alphabet={wanted!r} for {source.name}, whose states are {stored!r}",
                expected="the same letters, in the order they shall have",
                remedy="correct the alphabet, or leave it out to keep the order of the file",
            )
        order = [stored.index(letter) for letter in wanted]
        pairs = {pair: table[np.ix_(order, order)] for pair, table in pairs.items()}
        fields = fields[:, order]
    if options.gauge is not None:
        pairs, fields, constant = zero_sum(pairs, fields)
    with checked(source, len(fields)):
        return models.Potts(pairs, fields, constant=constant)


def zero_sum(pairs: Pairs, fields: Floats) -> tuple[Pairs, Floats, float]:
    """The same log f with couplings whose rows and columns, and fields whose states, sum to zero, and a constant.

    >>> pairs, fields, constant = zero_sum({(0, 1): np.array([[1.0, 0.0], [0.0, 0.0]])}, np.zeros((2, 2)))
    >>> pairs[0, 1].tolist(), fields.tolist(), constant
    ([[0.25, -0.25], [-0.25, 0.25]], [[0.25, -0.25], [0.25, -0.25]], 0.25)
    """
    fields = fields.copy()
    constant = 0.0
    moved: Pairs = {}
    for (i, j), table in pairs.items():
        rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
        moved[i, j] = table - rows - columns + table.mean()
        fields[i] += rows[:, 0]
        fields[j] += columns[0]
        constant -= float(table.mean())
    means = fields.mean(axis=1, keepdims=True)
    return moved, fields - means, constant + float(means.sum())


def check_size(source: Source, units: int) -> None:
    """Refuse a small file with many units before anything is made of them."""
    if units > max(_UNITS, source.size):
        raise InputError(
            found=f"{source.name}, a small file with {units:,} units",
            expected="at least a byte for each unit",
            remedy="check how it was made",
        )


@contextmanager
def checked(source: Source, units: int) -> Iterator[None]:
    """Check the size of a model before it is made, and add the file's name to what its own checks say."""
    check_size(source, units)
    try:
        yield
    except InputError as problem:
        raise problem.with_found(f"{problem.found} in {source.name}") from problem


def _floats(array: NDArray[Any]) -> Floats:
    return np.asarray(array, dtype=np.float64)
