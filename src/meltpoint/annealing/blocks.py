"""Blocks of units that are independent given the rest, and segments of a schedule."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.layers.unit import Bits, Floats, Unit

Indices: TypeAlias = NDArray[np.integer]

Sparse: TypeAlias = Any
"""A `scipy.sparse.csr_array`, which has no types."""

Columns: TypeAlias = slice | NDArray[np.integer]
"""Where units lie in an array (chain, unit)."""


@dataclass(frozen=True, eq=False)
class UnitBlock:
    """Units of one kind that are independent given the rest: their columns, and the sizes of their layers.

    Each layer takes its random numbers by itself, so that a chain's stream does not depend on how layers are joined.
    """

    unit: Unit
    columns: Columns
    layer_sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of units."""
        return sum(self.layer_sizes)


@dataclass(frozen=True, eq=False)
class Segment:
    """One run through betas: which units of the state are clamped (unit,), and whether its sweeps are reversed."""

    betas: Floats
    clamped: NDArray[np.bool_] | None = None
    reversed_sweeps: bool = False

    @property
    def steps(self) -> int:
        """Number of sweeps."""
        return self.betas.size - 1


@dataclass(frozen=True, eq=False)
class RaiseStart:
    """Where RAISE's chains start (chain, unit of the state), what they run through, and their first log weights."""

    state: Bits
    segments: Sequence[Segment]
    log_weights: Floats
