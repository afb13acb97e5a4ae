"""A family of distributions laid out for the kernels: padded layers, and weights cut into strips.

Every layer is padded to whole blocks of LANES units, so that a block's uniforms are one step of the chain's
generators and its units one word. Padding units have no weights and no biases and are never on.

For int16 weights of one source layer there are also tables, if they are small: for every four neighbouring units (a
quad) the sums of their rows for all 16 states, so that a quarter as many rows are added whatever the state. The sums
are integers, so rows and tables give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.backends.numba.kernels.blocks import to_words
from meltpoint.kernels.rows import (
    BLOCK,
    FEW,
    GROUP,
    PAIR,
    QUAD,
    empty_aligned,
    safe_group,
    strip_width,
)
from meltpoint.kernels.streams import LANES
from meltpoint.models.bipartite import BipartitePath

STATES = 2**QUAD
ON, OFF, QUADS, FLIPS, CHEAPEST = range(5)
"""Which lines to add: of the units that are on, of those that are off, of the tables, of the units that flipped, or
what costs least."""
_TABLE_BYTES = 4 * 2**20
"""Tables beyond this are slower than rows: every tile of chains streams them through the second-level cache."""
SECTION = 400
"""Units whose rows, in strips of PAIR cache lines, about fill a first-level cache of 32 kB; more passes cost more."""


class Layout(NamedTuple):
    """Where the units of a side lie."""

    starts: NDArray[np.int64]  # first padded unit of each layer, and the total at the end
    sizes: NDArray[np.int64]  # real units of each layer
    real: NDArray[np.uint32]  # (block,) bits of the real units
    sections: NDArray[np.int64]  # (layer + 1,) the first section of each layer, and their number
    edges: NDArray[np.int64]  # (section + 1,) the first block of each section, and the number of blocks
    lists: int  # which lines to add for these units; CHEAPEST but in tests


class Feed(NamedTuple):
    """The weights through which the other side feeds a side."""

    weights: NDArray[Any]  # flat strips
    quads: NDArray[Any]  # flat tables, strip by strip
    strips: NDArray[np.int64]  # (strip, 8): see `_side`
    totals: NDArray[Any]  # (1 + strip, width): zeros, and the sum of all rows of each strip
    stride: int  # elements of a chain's field: units and room for the last strip, or a place for every strip
    table_width: int  # columns of a row of a table
    kept: bool  # whether sums may be kept from step to step and corrected: integers do not drift


class Side(NamedTuple):
    """One side as the kernel sees it. Arguments of functions are its parts: each type is compiled by itself."""

    base_bias: NDArray[np.float64]
    slope: NDArray[np.float64]  # bias - base bias: the bias at beta is base_bias + beta * slope
    scale: float  # weights are multiplied by this
    layout: Layout
    feed: Feed
    tabled: bool  # whether there are tables for all sources
    for_dense: bool  # whether tables are for states of which many units are on, and rows for others
    parts: bool  # whether a field has a place for every strip, to be added up: sums of several layers that are kept


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

    @property
    def tables(self) -> bool | None:
        """Whether kernels need what adds up tables, which only 16-bit weights can have; None if not."""
        return True if self.even.feed.weights.dtype == np.int16 else None


def pack(family: BipartitePath, weight_type: DTypeLike, scale: float = 1.0, lists: int = CHEAPEST) -> Packed:
    """Lay a family out for kernels whose weights are int16 multiples of scale, float32 or float64."""
    dtype = np.dtype(weight_type)
    target = family.target
    blocks = []
    for b in target.blocks:
        weights = np.rint(b.weights / scale) if dtype == np.int16 else b.weights
        blocks.append((b.even_layer, b.odd_layer, weights.astype(dtype)))
    to_even = [(odd, even, weights.T) for even, odd, weights in blocks]
    even_sizes, odd_sizes = [b.size for b in target.even_biases], [b.size for b in target.odd_biases]
    even = _side(even_sizes, target.even_bias, family.base_even, to_even, dtype, scale, lists)
    odd = _side(odd_sizes, target.odd_bias, family.base_odd, blocks, dtype, scale, lists)
    reach = np.abs(target.odd_bias - family.base_odd)
    for _, columns, block in target.placed_blocks:
        reach[columns] += np.abs(block.weights).sum(axis=0)
    real = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    return Packed(even, odd, float(reach.max()), real)


def padded(size: int) -> int:
    """Units of a layer, padding included."""
    return -(-size // LANES) * LANES


def spread(values: NDArray[Any], sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[Any]:
    """Values (…, unit) of layers of these sizes at their places among the padded units (…, padded unit)."""
    full = np.zeros((*values.shape[:-1], sum(map(padded, sizes))), values.dtype)
    for units, places in _places(sizes):
        full[..., places] = values[..., units]
    return full


def without_padding(values: NDArray[Any], sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[Any]:
    """What `spread` was given."""
    return np.concatenate([values[..., places] for _, places in _places(sizes)], axis=-1)


def _places(sizes: Sequence[int] | NDArray[np.int64]) -> list[tuple[slice, slice]]:
    """Where the units of each layer are without padding, and with it."""
    firsts, starts = np.cumsum([0, *sizes]), np.cumsum([0, *map(padded, sizes)])
    return [
        (slice(first, first + size), slice(start, start + size))
        for first, start, size in zip(firsts, starts, sizes, strict=False)
    ]


def _side(
    sizes: list[int],
    bias: NDArray[np.float64],
    base_bias: NDArray[np.float64],
    sources: list[tuple[int, int, NDArray[Any]]],
    dtype: np.dtype,
    scale: float,
    lists: int,
) -> Side:
    """Pack one side. `sources` holds (source layer, layer of this side, weights (source unit, unit))."""
    starts = np.cumsum([0, *map(padded, sizes)]).astype(np.int64)
    few = sum(weights.shape[0] for _, _, weights in sources) <= FEW
    kept = dtype == np.int16 and not few
    width = strip_width(dtype) * (PAIR if kept else 1)
    sum_type = np.dtype(np.int32) if kept else dtype
    narrow = sum(sizes) <= LANES
    table_width = LANES if kept else width
    parts = kept and len({layer for _, layer, _ in sources}) < len(sources)
    rows, tables, strips, totals = [], [np.zeros(0, dtype)], [], [np.zeros(width)]
    row_offset = table_offset = 0
    for source, layer, weights in sources:
        height = padded(weights.shape[0])
        tabled = (
            dtype == np.int16
            and (few or len(sources) == 1)
            and height * padded(weights.shape[1]) * STATES // QUAD * 2 <= _TABLE_BYTES
        )
        for column in range(0, padded(weights.shape[1]), width):
            # What is left of a layer may be half a pair. The row of zeros at the end is to fill up lists.
            own_width = min(width, padded(weights.shape[1]) - column) if kept else width
            strip = np.zeros((height + 1, own_width), dtype)
            part = weights[:, column : column + own_width]
            strip[: part.shape[0], : part.shape[1]] = part
            target = starts[layer] + column
            place = len(strips) * width if parts else target
            fresh = parts or all(target != earlier[5] for earlier in strips)
            # Offset in weights, source layer, place in the field, offset in quads, whether it is the first at its
            # place, the first unit it feeds, how many rows can be added up before the sum is widened, and its cache
            # lines.
            group = safe_group(strip) // BLOCK * BLOCK if kept else GROUP
            n_lines = own_width // strip_width(dtype)
            strips.append(
                (row_offset, source, place, table_offset if tabled else -1, fresh, target, group, n_lines)
            )
            rows.append(strip.ravel())
            row_offset += strip.size
            totals.append(np.zeros(width))
            totals[-1][:own_width] = strip.sum(axis=0, dtype=np.int64 if dtype == np.int16 else np.float64)
            if tabled:
                for line in range(0, own_width, table_width):
                    tables.append(_tables(strip[:-1, line : line + table_width]).ravel())
                    table_offset += tables[-1].size
    layout = Layout(
        starts,
        np.array(sizes, np.int64),
        to_words(spread(np.ones(sum(sizes), np.uint8), sizes)),
        *_sections(starts, dtype),
        lists,
    )
    feed = Feed(
        _aligned(np.concatenate(rows)),
        _aligned(np.concatenate(tables)),
        np.array(strips, np.int64),
        np.array(totals).astype(sum_type),
        len(strips) * width if parts else int(starts[-1]) + width,
        table_width,
        kept,
    )
    biases = spread(base_bias, sizes), spread(bias - base_bias, sizes)
    return Side(
        *biases, scale, layout, feed, all(strip[3] >= 0 for strip in strips), kept and not narrow, parts
    )


def _sections(starts: NDArray[np.int64], dtype: np.dtype) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sections and edges of a side whose layers begin at these units; where sums are not kept, layers are whole."""
    sections, edges = [0], [0]
    for first, end in pairwise((starts // LANES).tolist()):
        count = -(-(end - first) * LANES // SECTION) if dtype == np.int16 else 1
        edges += np.linspace(first, end, count + 1).round().astype(int)[1:].tolist()
        sections.append(sections[-1] + count)
    return np.array(sections, np.int64), np.array(edges, np.int64)


def _tables(rows: NDArray[Any]) -> NDArray[Any]:
    """Sums (quad, state, column) of the rows (unit, column) that are on in each state of each quad."""
    quads = rows.reshape(-1, QUAD, 1, rows.shape[1])
    sums = np.zeros((len(quads), STATES, rows.shape[1]), rows.dtype)
    for unit in range(QUAD):
        known = 2**unit  # states of the units before this one
        sums[:, known : 2 * known] = sums[:, :known] + quads[:, unit]
    return sums


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """A copy whose first element starts a cache line."""
    out = empty_aligned(array.size, array.dtype)
    out[:] = array
    return out
