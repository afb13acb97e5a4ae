"""Which rows to add: of the units that are on, or off, or flipped, or of the quads' tables.

Adding costs a cache line per row and strip, so the shortest list wins; tables lie in the second-level cache and
their sums are widened four times as often, so a table's row counts as one and a half. Few units always take the
tables: a choice that no processor can foresee costs more than it saves. Integer sums do not drift, so what a layer
adds to a field can be kept and corrected by the rows of the units that flipped. The choice is made for every chain,
layer and step. It depends on the states alone, never on a clock, and does not change the sums.
"""

import numpy as np

from meltpoint.annealing.kernels.bits import WORD, count_ones, list_ones
from meltpoint.annealing.kernels.blocks import list_quads
from meltpoint.annealing.kernels.compiling import compiled
from meltpoint.annealing.kernels.packing import CHEAPEST, FLIPS, OFF, ON, QUADS
from meltpoint.annealing.kernels.rows import FEW, QUAD, STRIP_BYTES

_FLIPS_OVERHEAD = 4  # rows: two lists have two remainders


@compiled
def list_lines(
    words: np.ndarray,
    listed: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    real: np.ndarray,
    lists: int,
    tabled: np.ndarray,
    corrects: bool,
    lines: np.ndarray,
    counts: np.ndarray,
) -> None:
    """List, layer by layer and chain by chain, the lines to add for units (chain, block) of a side.

    `starts`, `sizes`, `real` and `lists` are the side's, see `Side`. A line is row * STRIP_BYTES; `lines` is flat,
    (chain * unit,) and SLACK more. `counts` (3, chain, layer) say how many there are, of which kind, and, for flips,
    how many lines to subtract follow. `tabled` (layer,) says which layers have tables. `listed` (chain, block) holds
    the units of the last call and then of this one, unless it is empty; `corrects` says whether what was added up
    after the last call is still there.
    """
    n_units = starts[-1]
    for layer in range(sizes.size):
        size = sizes[layer]
        first, last = starts[layer] // WORD, starts[layer + 1] // WORD
        n_quads = (size + QUAD - 1) // QUAD
        for chain in range(words.shape[0]):
            kind = lists
            if kind == CHEAPEST and size <= FEW:
                kind = QUADS
            elif kind == CHEAPEST:
                n_on, n_flipped = 0, size
                for k in range(first, last):
                    n_on += count_ones(words[chain, k])
                if corrects:
                    n_flipped = 0
                    for k in range(first, last):
                        n_flipped += count_ones(words[chain, k] ^ listed[chain, k])
                kind = _cheapest(n_on, n_flipped, size, n_quads if tabled[layer] else size)
            begin = n = chain * n_units + starts[layer]
            n_removed = 0
            if kind == FLIPS and corrects:
                for k in range(first, last):
                    added = np.uint32(words[chain, k] & ~listed[chain, k])
                    n = list_ones(added, WORD * STRIP_BYTES * (k - first), STRIP_BYTES, lines, n)
                end = n
                for k in range(first, last):
                    removed = np.uint32(listed[chain, k] & ~words[chain, k])
                    end = list_ones(removed, WORD * STRIP_BYTES * (k - first), STRIP_BYTES, lines, end)
                n_removed = end - n
            elif kind == QUADS and tabled[layer]:
                for k in range(last - first):
                    list_quads(words[chain, first + k], k * (WORD // QUAD), lines, begin + k * (WORD // QUAD))
                n = begin + n_quads
            else:
                kind = OFF if kind == OFF else ON
                for k in range(first, last):
                    word = words[chain, k]
                    if kind == OFF:
                        word = np.uint32(~word & real[k])
                    n = list_ones(word, WORD * STRIP_BYTES * (k - first), STRIP_BYTES, lines, n)
            counts[0, chain, layer] = n - begin
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
