"""A family of distributions laid out for the kernels: padded layers, and weights cut into strips.

Every layer is padded to a multiple of LANES units, so that a layer's uniforms are whole rows of the chain's
generators. Padding units have no weights and no biases and are never on.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.annealing.family import Family
from meltpoint.annealing.kernels.rows import STRIP_BYTES, strip_width
from meltpoint.annealing.streams import LANES


class Side(NamedTuple):
    """One side as the kernel sees it: its units' biases, and the weights through which the other side feeds it."""

    base_bias: NDArray[np.float64]
    slope: NDArray[np.float64]  # bias - base bias: the bias at beta is base_bias + beta * slope
    starts: NDArray[np.int64]  # first padded unit of each layer, and the total at the end
    sizes: NDArray[np.int64]  # real units of each layer
    real: NDArray[np.uint8]  # 1 for real units, 0 for padding
    slope_totals: NDArray[np.float64]  # sum of slope over each layer
    weights: NDArray[np.generic]  # flat strips
    strips: NDArray[np.int64]  # (strip, 3): offset in weights, source layer, first padded unit it feeds
    totals: NDArray[np.generic]  # (strip, width): sum of all the strip's rows
    scale: float  # weights are multiplied by this


@dataclass(frozen=True)
class Packed:
    """Both sides, and the largest |d t / d beta| any odd unit's input t can have."""

    even: Side
    odd: Side
    reach: float
    real: np.dtype


def pack(family: Family, weight_type: DTypeLike, scale: float = 1.0) -> Packed:
    """Lay a family out for kernels whose weights are int16 multiples of scale, float32 or float64."""
    dtype = np.dtype(weight_type)
    target = family.target
    blocks = []
    for b in target.blocks:
        weights = np.rint(b.weights / scale) if dtype == np.int16 else b.weights
        blocks.append((b.even_layer, b.odd_layer, weights.astype(dtype)))
    to_even = [(odd, even, weights.T) for even, odd, weights in blocks]
    even = _side([b.size for b in target.even_biases], target.even_bias, family.base_even, to_even, dtype, scale)
    odd = _side([b.size for b in target.odd_biases], target.odd_bias, family.base_odd, blocks, dtype, scale)
    reach = np.abs(target.odd_bias - family.base_odd)
    for b in target.blocks:
        reach[target.odd_slices[b.odd_layer]] += np.abs(b.weights).sum(axis=0)
    real = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    return Packed(even, odd, float(reach.max()), real)


def padded_columns(sizes: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each real unit lies among the padded ones."""
    return np.concatenate([start + np.arange(size) for start, size in zip(starts[:-1], sizes, strict=True)])


def _side(
    sizes: list[int],
    bias: NDArray[np.float64],
    base_bias: NDArray[np.float64],
    sources: list[tuple[int, int, NDArray[np.generic]]],
    dtype: np.dtype,
    scale: float,
) -> Side:
    """Pack one side. `sources` holds (source layer, layer of this side, weights (source unit, unit))."""
    padded = [-(-size // LANES) * LANES for size in sizes]
    starts = np.cumsum([0, *padded]).astype(np.int64)
    columns = padded_columns(np.array(sizes), starts)
    full_base, full_slope = np.zeros(starts[-1]), np.zeros(starts[-1])
    full_base[columns] = base_bias
    full_slope[columns] = bias - base_bias
    real = np.zeros(starts[-1], np.uint8)
    real[columns] = 1
    width = strip_width(dtype)
    pieces, strips, totals = [], [], []
    offset = 0
    sum_type = np.int32 if dtype == np.int16 else dtype
    for source, layer, weights in sources:
        wide = np.zeros((weights.shape[0], padded[layer]), dtype)
        wide[:, : weights.shape[1]] = weights
        for column in range(0, padded[layer], width):
            piece = wide[:, column : column + width]
            pieces.append(piece.ravel())
            strips.append((offset, source, starts[layer] + column))
            totals.append(piece.sum(axis=0, dtype=np.float64 if sum_type != np.int32 else np.int64))
            offset += piece.size
    return Side(
        full_base,
        full_slope,
        starts,
        np.array(sizes, np.int64),
        real,
        np.add.reduceat(full_slope, starts[:-1]),
        _aligned(np.concatenate(pieces)),
        np.array(strips, np.int64),
        np.array(totals).astype(sum_type),
        scale,
    )


def _aligned(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A copy whose first element starts a cache line: `add_rows` relies on it."""
    room = np.empty(array.nbytes + STRIP_BYTES, np.uint8)
    skip = -room.ctypes.data % STRIP_BYTES
    out = room[skip : skip + array.nbytes].view(array.dtype)
    out[:] = array
    return out
