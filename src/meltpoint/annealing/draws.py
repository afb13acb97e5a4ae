"""Random numbers of a batch of chains, in the order in which a transition asks for them."""

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import UnitBlock
from meltpoint.kernels.streams import LANES, next_uniforms
from meltpoint.layers.unit import Bits, Floats
from meltpoint.statistics.special import ndtri


class Draws:
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
        """Uniforms (chain, number) in (0, 1], `count` for each chain."""
        rows = -(-max(0, count - self._left.shape[1]) // LANES)
        fresh = next_uniforms(self._generators, rows * LANES, self._dtype)
        left = np.concatenate([self._left, fresh], axis=1)
        taken, self._left = left[:, :count], left[:, count:]
        return taken

    def normals(self, count: int) -> Floats:
        """Standard normal numbers (chain, number), `count` for each chain."""
        return ndtri(np.minimum(self.uniforms(count), 1 - 2.0**-32))

    def units(self, block: UnitBlock, inputs: Floats) -> Bits:
        """States (chain, unit) of a block's units with these inputs (chain, unit, *input_shape)."""
        if self._in_rows:
            rows = [next_uniforms(self._generators, size, self._dtype) for size in block.layer_sizes]
            return block.unit.draw(inputs, np.concatenate(rows, axis=1))
        return block.unit.draw(inputs, self.uniforms(block.size))
