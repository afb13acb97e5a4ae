"""Which rows to add: of the units that are on, or off, or flipped, or of tables.

Adding costs a cache line per row and strip, so the shortest list wins. Integer sums do not drift, so they can be kept
and corrected by the rows of the units that flipped. The choice is made for every chain and step. It depends on the
states alone, never on a clock, and does not change the sums.

A table has the sums of four neighbouring units' rows (a quad's) for all 16 states of theirs. It is made for all chains
of a tile, strip by strip, and a quarter as many rows are added whatever the state.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meltpoint.backends.numba.kernels.packing import CHEAPEST, FLIPS, OFF, ON, TABLES, Layout
from meltpoint.kernels.bits import SLACK, WORD, count_flipped, list_on
from meltpoint.kernels.compiling import compiled_into_callers
from meltpoint.kernels.rows import BLOCK, FEW, QUAD, STRIP_BYTES

_FLIPS_OVERHEAD = 4  # rows: two lists have two remainders
_LEAST_LINES = 64  # of a section: fewer gain less from the first-level cache than a further pass costs
_ROWS_OF_A_LOOKUP = 1.4  # a line of a table costs as much
_ROWS_OF_A_TABLE = 20  # making one costs as much
_SAMPLED = 8  # one of as many chains
ROOM = 2 * BLOCK
"""Lines that fill up the lists of a section."""


class Lists(NamedTuple):
    """The lines to add and to subtract for a side's units. A line is row * STRIP_BYTES.

    Lists of a layer's sections follow each other, filled up to whole BLOCKs with the row of zeros after its rows.
    """

    lines: NDArray[np.uint32]  # flat, (chain * unit,) with ROOM more for every section and SLACK at the end
    kinds: NDArray[np.int64]  # (chain, layer) of which kind the lists are
    places: NDArray[
        np.int64
    ]  # (chain, section, 4) begin and number of lines to add, and of those to subtract
    whole: NDArray[
        np.bool_
    ]  # (layer,) whether lists are so short that its sections are better added together
    listed: NDArray[np.uint32]  # (chain, block) units that were listed last; empty where sums are not kept

    @classmethod
    def of(cls, layout: Layout, n_chains: int, kept: bool) -> "Lists":
        """Room for the lists of a tile."""
        n_units, n_sections = int(layout.starts[-1]), layout.edges.size - 1
        return cls(
            np.empty(n_chains * (n_units + ROOM * n_sections) + SLACK, np.uint32),
            np.empty((n_chains, layout.sizes.size), np.int64),
            np.empty((n_chains, n_sections, 4), np.int64),
            np.empty(layout.sizes.size, np.bool_),
            np.empty((n_chains if kept else 0, n_units // WORD), np.uint32),
        )


@compiled_into_callers
def list_lines(words: np.ndarray, side: Layout, none_on: np.ndarray, corrects: bool, out: Lists) -> None:
    """List, chain by chain and layer by layer, the lines for units (chain, block) of a side.

    `corrects` says whether what was added up after the last call is still there; `none_on` (block,) is zero.
    """
    starts, sizes, real, sections, edges, wanted = side
    lines, kinds, places, whole, listed = out
    room = starts[-1] + ROOM * (edges.size - 1)
    flat, flat_listed = words.reshape(-1), listed.reshape(-1)
    for chain in range(words.shape[0]):
        at = chain * words.shape[1]
        # The shortest lists of each layer; those of flips are taken for all layers, or for none.
        n_flipped, n_shorter = 0, 0
        for layer in range(sizes.size):
            first = starts[layer] // WORD
            n_words = starts[layer + 1] // WORD - first
            kinds[chain, layer] = OFF if wanted == OFF else ON
            if wanted == CHEAPEST and (corrects or sizes[layer] > FEW):
                # For few units: a choice that cannot be foreseen costs more than it saves.
                n_on = count_flipped(words, at + first, none_on, first, n_words)
                n_shorter += min(n_on, sizes[layer] - n_on)
                if 2 * n_on > sizes[layer]:
                    kinds[chain, layer] = OFF
                if corrects:
                    n_flipped += _FLIPS_OVERHEAD
                    n_flipped += count_flipped(words, at + first, listed, at + first, n_words)
        flips = corrects and (wanted == FLIPS or (wanted == CHEAPEST and n_flipped < n_shorter))
        for layer in range(sizes.size):
            # In order: a list may overwrite the beginning of the next one's place.
            kind = FLIPS if flips else kinds[chain, layer]
            kinds[chain, layer] = kind
            first, end_block = starts[layer] // WORD, starts[layer + 1] // WORD
            end = chain * room + starts[layer] + ROOM * sections[layer]
            zeros = (end_block - first) * WORD * STRIP_BYTES
            # Units of one array that are not in another: one place for all of them, which is compiled once.
            for half in range(2):
                source, others, at_source, at_others = flat, none_on, at, 0
                if kind == FLIPS:
                    others, at_others = flat_listed, at
                if half == 1:
                    source, at_source, others, at_others = others, at_others, flat, at
                    if kind == OFF:
                        source, at_source = real, 0
                listing = kind == FLIPS or kind == (ON if half == 0 else OFF)
                for section in range(sections[layer], sections[layer + 1]):
                    block = edges[section]
                    count = edges[section + 1] - block if listing else 0
                    begin = end
                    end = list_on(
                        source, at_source + block, others, at_others + block, count,
                        (block - first) * WORD * STRIP_BYTES, STRIP_BYTES, lines, begin,
                    )  # fmt: skip
                    places[chain, section, 2 * half] = begin
                    places[chain, section, 2 * half + 1] = end - begin
                    for k in range(BLOCK - 1):
                        lines[end + k] = zeros
                    end = begin + (end - begin + BLOCK - 1) // BLOCK * BLOCK
    for layer in range(sizes.size):
        first, last = sections[layer], sections[layer + 1] - 1
        n_listed = 0
        for chain in range(words.shape[0]):
            n_listed += places[chain, last, 2] + places[chain, last, 3] - places[chain, first, 0]
        whole[layer] = n_listed < _LEAST_LINES * (last + 1 - first) * words.shape[0]
    remember_listed(words, listed)


@compiled_into_callers
def tables_cost_less(
    words: np.ndarray, listed: np.ndarray, side: Layout, n_fed: int, none_on: np.ndarray, corrects: bool
) -> bool:
    """Whether tables of the units (chain, block) of a side cost less than rows, for most chains of a tile.

    `n_fed` are the units that they feed; `listed`, `none_on` and `corrects` are as in `list_lines`. Some of the chains
    are sampled: sums are the same either way.
    """
    n_chains, n_words = words.shape
    size = 0
    for layer in range(side.sizes.size):
        size += side.sizes[layer]
    if side.lists != CHEAPEST:
        return side.lists == TABLES
    if n_chains < _ROWS_OF_A_TABLE:
        return False
    if size <= FEW or n_fed <= WORD:
        return True
    rows, lines = 0, 0
    for chain in range(0, n_chains, _SAMPLED):
        at = chain * n_words
        n_on = count_flipped(words, at, none_on, 0, n_words)
        shorter = min(n_on, size - n_on)
        if corrects:
            shorter = min(shorter, count_flipped(words, at, listed, at, n_words) + _FLIPS_OVERHEAD)
        rows += shorter
        lines += n_words * WORD // QUAD
    return rows > (_ROWS_OF_A_LOOKUP + _ROWS_OF_A_TABLE / n_chains) * lines


@compiled_into_callers
def remember_listed(words: np.ndarray, listed: np.ndarray) -> None:
    """Keep the units (chain, block) whose rows are added up, to correct the sums by what flips."""
    for chain in range(listed.shape[0]):
        for k in range(words.shape[1]):
            listed[chain, k] = words[chain, k]
