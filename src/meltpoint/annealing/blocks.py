"""Blocks of units that are independent given the rest, their random numbers, and segments of a schedule."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.streams import LANES, next_uniforms
from meltpoint.layers.unit import Floats, States, Unit
from meltpoint.statistics.special import ndtri

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

    state: States
    segments: Sequence[Segment]
    log_weights: Floats


class Draws(ABC):
    """What a transition draws from: `len` is the number of chains."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def uniforms(self, count: int) -> NDArray[np.floating]:
        """Uniforms (chain, number) in (0, 1], `count` for each chain."""

    def normals(self, count: int) -> Floats:
        """Standard normal numbers (chain, number), `count` for each chain."""
        return ndtri(np.minimum(self.uniforms(count), 1 - 2.0**-32))

    def units(self, block: UnitBlock, inputs: Floats) -> States:
        """States (chain, unit) of a block's units with these inputs (chain, unit, *input_shape)."""
        return block.unit.draw(inputs, self.uniforms(block.size))


class StreamDraws(Draws):
    """Draws with the chains' own generators (chain, 4, LANES), which are advanced.

    Uniforms are taken one after the other. With `in_rows` every layer of a block begins a new row of LANES, because the
    compiled kernels draw whole vectors of units together.
    """

    def __init__(
        self,
        generators: NDArray[np.uint32],
        dtype: type[np.floating] = np.float64,
        *,
        in_rows: bool = False,
    ) -> None:
        self._generators, self._dtype, self._in_rows = generators, dtype, in_rows
        self._left = np.empty((len(generators), 0), dtype)

    def __len__(self) -> int:
        return len(self._generators)

    def uniforms(self, count: int) -> NDArray[np.floating]:
        rows = -(-max(0, count - self._left.shape[1]) // LANES)
        fresh = next_uniforms(self._generators, rows * LANES, self._dtype)
        left = np.concatenate([self._left, fresh], axis=1)
        taken, self._left = left[:, :count], left[:, count:]
        return taken

    def units(self, block: UnitBlock, inputs: Floats) -> States:
        if not self._in_rows:
            return super().units(block, inputs)
        rows = [next_uniforms(self._generators, size, self._dtype) for size in block.layer_sizes]
        return block.unit.draw(inputs, np.concatenate(rows, axis=1))


class GeneratorDraws(Draws):
    """Draws with NumPy's generators, each of which serves so many successive chains."""

    def __init__(self, generators: Sequence[np.random.Generator], chains: int) -> None:
        self._generators, self._chains = generators, chains

    def __len__(self) -> int:
        return len(self._generators) * self._chains

    def uniforms(self, count: int) -> Floats:
        return np.concatenate([1 - g.random((self._chains, count)) for g in self._generators])
