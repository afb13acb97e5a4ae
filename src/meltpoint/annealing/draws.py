"""Random numbers of a batch of chains, in the order in which a transition asks for them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import UnitBlock
from meltpoint.kernels.streams import LANES, next_uniforms
from meltpoint.layers.unit import Bits, Floats
from meltpoint.statistics.special import ndtri


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

    def units(self, block: UnitBlock, inputs: Floats) -> Bits:
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

    def units(self, block: UnitBlock, inputs: Floats) -> Bits:
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
