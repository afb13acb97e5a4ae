"""Which rows to add: of the units that are on, or off, or flipped, or of the quads' tables.

Adding costs a cache line per row and strip, so the shortest list wins; tables lie in the second-level cache and
their sums are widened four times as often, so a table's row counts as one and a half. Few units always take the
tables: a choice that no processor can foresee costs more than it saves. Integer sums do not drift, so what a layer
adds to a field can be kept and corrected by the rows of the units that flipped. The choice is made for every chain,
layer and step. It depends on the states alone, never on a clock, and does not change the sums.
"""

import numpy as np

from meltpoint.annealing.kernels.bits import WORD, count_flipped, list_on
from meltpoint.annealing.kernels.blocks import list_quads
from meltpoint.annealing.kernels.packing import CHEAPEST, FLIPS, OFF, ON, QUADS
from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.rows import FEW, QUAD, STRIP_BYTES

_FLIPS_OVERHEAD = 4  # rows: two lists have two remainders


@compiled
def list_lines(
    words: np.ndarray,
    listed: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    real: np.ndarray,
    none_on: np.ndarray,
    lists: int,
    tabled: np.ndarray,
    corrects: bool,
    lines: np.ndarray,
    counts: np.ndarray,
) -> None:
    """List, chain by chain and layer by layer, the lines to add for units (chain, block) of a side.

    `starts`, `sizes`, `real` and `lists` are the side's, see `Side`; `none_on` (block,) is zero. A line is
    row * STRIP_BYTES; `lines` is flat, (chain * unit,) and SLACK more. `counts` (3, chain, layer) say how many there
    are, of which kind, and, for flips, how many lines to subtract follow. `tabled` (layer,) says which layers have
    tables. `listed` (chain, block) holds the units of the last call and then of this one, unless it is empty;
    `corrects` says whether what was added up after the last call is still there.
    """
    n_units = starts[-1]
    for chain in range(words.shape[0]):
        for layer in range(
            sizes.size
        ):  # in order: a list may overwrite the beginning of the next one's place
            size = sizes[layer]
            first = starts[layer] // WORD
            n_words = starts[layer + 1] // WORD - first
            n_quads = (size + QUAD - 1) // QUAD
            at = chain * words.shape[1] + first
            kind = lists
            if kind == CHEAPEST and size <= FEW:
                kind = QUADS
            elif kind == CHEAPEST:
                n_on = count_flipped(words, at, none_on, first, n_words)
                n_flipped = count_flipped(words, at, listed, at, n_words) if corrects else size
                kind = _cheapest(n_on, n_flipped, size, n_quads if tabled[layer] else size)
            begin = chain * n_units + starts[layer]
            end = begin + n_quads
            n_removed = 0
            if kind == FLIPS and corrects:
                end = list_on(words, at, listed, at, n_words, STRIP_BYTES, lines, begin)
                n_removed = list_on(listed, at, words, at, n_words, STRIP_BYTES, lines, end) - end
            elif kind == QUADS and tabled[layer]:
                for k in range(n_words):
                    list_quads(words[chain, first + k], k * (WORD // QUAD), lines, begin + k * (WORD // QUAD))
            elif kind == OFF:
                end = list_on(real, first, words, at, n_words, STRIP_BYTES, lines, begin)
            else:
                kind = ON
                end = list_on(words, at, none_on, first, n_words, STRIP_BYTES, lines, begin)
            counts[0, chain, layer] = end - begin
            counts[1, chain, layer] = kind
            counts[2, chain, layer] = n_removed
    if listed.size > 0:
        for chain in range(words.shape[0]):
            for k in range(words.shape[1]):
                listed[chain, k] = words[chain, k]


@compiled
def _cheapest(n_on: int, n_flipped: int, size: int, n_tables: int) -> int:
    """Which lines cost least."""
    shorter = min(n_on, size - n_on)
    tables = 3 * n_tables
    if 2 * (n_flipped + _FLIPS_OVERHEAD) < min(tables, 2 * shorter):
        return FLIPS
    if tables < 2 * shorter:
        return QUADS
    return ON if n_on == shorter else OFF
