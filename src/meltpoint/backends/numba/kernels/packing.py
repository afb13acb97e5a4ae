"""A family of distributions laid out for the kernels: padded layers, and weights cut into strips.

Every layer is padded to whole blocks of LANES units, so that a block's uniforms are one step of the chain's
generators and its units one word. Padding units have no weights and no biases and are never on.

Weights are int16 multiples of a scale, or float32, or float64; their sums are int32, or of the weights' own type. The
kernels see one memory in both types, and are compiled once for int16 and float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.backends.numba.kernels.blocks import to_words
from meltpoint.kernels.rows import BLOCK, GROUP, PAIR, empty_aligned, safe_group, strip_width
from meltpoint.kernels.streams import LANES
from meltpoint.models.bipartite import BipartitePath

ON, OFF, TABLES, FLIPS, CHEAPEST = range(5)
"""Which rows to add: of the units that are on, of those that are off, of tables, of the units that flipped, or
what costs least."""
SECTION = 400
"""Units whose rows, in strips of PAIR cache lines, about fill a first-level cache of 32 kB; more passes cost more."""


class Layout(NamedTuple):
    """Where the units of a side lie."""

    starts: NDArray[np.int64]  # first padded unit of each layer, and the total at the end
    sizes: NDArray[np.int64]  # real units of each layer
    real: NDArray[np.uint32]  # (block,) bits of the real units
    sections: NDArray[np.int64]  # (layer + 1,) the first section of each layer, and their number
    edges: NDArray[np.int64]  # (section + 1,) the first block of each section, and the number of blocks
    lists: int  # which rows to add for these units; CHEAPEST but in tests


class Feed(NamedTuple):
    """The weights through which the other side feeds a side."""

    weights: NDArray[np.int16]  # flat strips; of each source layer the rows of its units, and a row of zeros
    floats: NDArray[Any]  # the same memory
    strips: NDArray[np.int64]  # (strip, 6): see `_feed`
    totals: NDArray[Any]  # (1 + strip · source layer, column): zeros, and the sums of all rows
    float_totals: NDArray[Any]  # the same memory
    integer: bool  # whether weights and sums are integers, which do not drift: sums are kept and corrected
    stride: int  # elements of a chain's sums


class Side(NamedTuple):
    """One side as the kernel sees it."""

    base_bias: NDArray[np.float64]
    slope: NDArray[np.float64]  # bias - base bias: the bias at beta is base_bias + beta * slope
    scale: float  # weights are multiplied by this
    layout: Layout
    feed: Feed


@dataclass(frozen=True)
class Packed:
    """Both sides, the largest |d t / d beta| an odd unit's input t can have, and the type of the inputs.

    Unless q is None the even units are Potts sites of q states, laid out as in `OneHot`.
    """

    even: Side
    odd: Side
    reach: float
    real: np.dtype
    q: int | None = None


def pack(path: BipartitePath, weight_type: DTypeLike, scale: float = 1.0, lists: int = CHEAPEST) -> Packed:
    """Lay a path out for kernels whose weights are int16 multiples of scale, float32 or float64."""
    dtype, target = np.dtype(weight_type), path.target
    real = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    to_odd = {}
    for b in target.blocks:
        weights = np.rint(b.weights / scale) if dtype == np.int16 else b.weights
        to_odd[b.even_layer, b.odd_layer] = weights.astype(dtype)
    to_even = {(odd, even): weights.T for (even, odd), weights in to_odd.items()}
    even_layout, odd_layout = (
        _layout([b.size for b in biases], dtype, lists) for biases in (target.even_biases, target.odd_biases)
    )

    def side(bias: Any, base: Any, layout: Layout, source: Layout, weights: Any) -> Side:
        biases = spread(base, layout.sizes), spread(bias - base, layout.sizes)
        return Side(*biases, scale, layout, _feed(layout, source, weights, real))

    reach = np.abs(target.odd_bias - path.base_odd)
    for _, columns, block in target.placed_blocks:
        reach[columns] += np.abs(block.weights).sum(axis=0)
    return Packed(
        side(target.even_bias, path.base_even, even_layout, odd_layout, to_even),
        side(target.odd_bias, path.base_odd, odd_layout, even_layout, to_odd),
        float(reach.max()),
        real,
    )


def padded(size: int) -> int:
    """Units of a layer, padding included."""
    return -(-size // LANES) * LANES


def spread(values: NDArray[Any], sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[Any]:
    """Values (…, unit) of layers of these sizes at their places among the padded units (…, padded unit)."""
    full = np.zeros((*values.shape[:-1], sum(map(padded, sizes))), values.dtype)
    full[..., _places(sizes)] = values
    return full


def without_padding(values: NDArray[Any], sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[Any]:
    """What `spread` was given."""
    return values[..., _places(sizes)]


def _places(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each unit (unit,) is among the padded units."""
    starts = np.cumsum([0, *map(padded, sizes)])
    return np.concatenate([start + np.arange(size) for start, size in zip(starts, sizes, strict=False)])


def _layout(sizes: list[int], dtype: np.dtype, lists: int) -> Layout:
    """Where layers of these sizes lie; where sums are not kept, a layer is one section."""
    starts = np.cumsum([0, *map(padded, sizes)])
    sections, edges = [0], [0]
    for first, end in pairwise((starts // LANES).tolist()):
        count = -(-(end - first) * LANES // SECTION) if dtype == np.int16 else 1
        edges += np.linspace(first, end, count + 1).round().astype(int)[1:].tolist()
        sections.append(sections[-1] + count)
    starts, lengths, sections, edges = (np.array(each, np.int64) for each in (starts, sizes, sections, edges))
    real = to_words(spread(np.ones(sum(sizes), np.uint8), sizes))
    return Layout(starts, lengths, real, sections, edges, lists)


def _feed(
    layout: Layout, source: Layout, weights: dict[tuple[int, int], NDArray[Any]], real: np.dtype
) -> Feed:
    """The weights {(source layer, layer): (source unit, unit)} in strips.

    The layers that feed a layer are neighbours; of one between them without weights to it the rows are zero.
    """
    dtype = next(iter(weights.values())).dtype
    integer = dtype == np.int16
    line = strip_width(dtype)
    width = line * (PAIR if integer else 1)
    rows, strips, totals = [], [], [np.zeros((1, width))]
    offset = 0
    for layer, size in enumerate(layout.sizes.tolist()):
        sources = [k for k, fed in weights if fed == layer]
        first, end = min(sources), max(sources) + 1
        for column in range(0, padded(size), width):
            # What is left of a layer may be half a pair.
            own_width = min(width, padded(size) - column)
            own_totals = np.zeros((len(source.sizes), width))
            parts = []
            for k in range(first, end):
                part = weights.get((k, layer), np.zeros((0, 0), dtype))[:, column : column + own_width]
                parts.append(np.zeros((padded(int(source.sizes[k])) + 1, own_width), dtype))
                parts[-1][: part.shape[0], : part.shape[1]] = part
                own_totals[k, :own_width] = parts[-1].sum(axis=0, dtype=np.int64 if integer else np.float64)
            strip = np.concatenate(parts)
            # Offset in weights, the first source layer and the end of them, the first unit that is fed, how many rows
            # can be added up before the sum is widened, and cache lines.
            group = safe_group(strip) // BLOCK * BLOCK if integer else GROUP
            strips.append((offset, first, end, layout.starts[layer] + column, group, own_width // line))
            rows.append(strip.ravel())
            offset += strip.size
            totals.append(own_totals)
    flat = empty_aligned(offset, dtype)
    np.concatenate(rows, out=flat)
    whole = np.dtype(f"i{real.itemsize}")
    summed = np.concatenate(totals).astype(whole if integer else real)
    return Feed(
        flat.view(np.int16),
        flat.view(real),
        np.array(strips, np.int64),
        summed.view(whole),
        summed.view(real),
        integer,
        int(layout.starts[-1]) + width,
    )
