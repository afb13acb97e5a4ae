"""Which rows to add: of the units that are on, of those that are off, or of the quads' tables.

Adding costs a cache line per row and strip, so the shortest list wins; tables lie in the second-level cache and
their sums are widened four times as often, so a table's row counts as one and a half. Few units always take the
tables: a choice that no processor can foresee costs more than it saves. The choice depends on the state alone,
never on a clock, and does not change the sums.
"""

import numpy as np

from meltpoint.annealing.kernels.bits import WORD, count_ones, trailing_zeros, without_lowest
from meltpoint.annealing.kernels.blocks import list_quads
from meltpoint.annealing.kernels.compiling import compiled
from meltpoint.annealing.kernels.packing import CHEAPEST, OFF, ON, QUADS
from meltpoint.annealing.kernels.rows import FEW, QUAD, STRIP_BYTES


@compiled
def list_lines(
    words: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    real: np.ndarray,
    lists: int,
    tabled: np.ndarray,
    lines: np.ndarray,
    counts: np.ndarray,
    kinds: np.ndarray,
) -> None:
    """List, chain by chain and layer by layer, the lines to add for units (chain, block) of a side.

    `starts`, `sizes`, `real` and `lists` are the side's, see `Side`. A line is row * STRIP_BYTES; `counts` and
    `kinds` (chain, layer) say how many there are and of which kind, and `tabled` (layer,) which layers have tables.
    """
    flat = lines.reshape(-1)
    for layer in range(sizes.size):
        start, size = starts[layer], sizes[layer]
        first, last = start // WORD, starts[layer + 1] // WORD
        n_quads = (size + QUAD - 1) // QUAD
        for chain in range(words.shape[0]):
            begin = chain * lines.shape[1] + start
            kind = lists
            n_on = 0
            if kind == CHEAPEST and size <= FEW:
                kind = QUADS
            elif kind == CHEAPEST:
                for k in range(first, last):
                    n_on += count_ones(words[chain, k])
                kind = _cheapest(n_on, size, n_quads if tabled[layer] else size)
            if kind == QUADS and tabled[layer]:
                for k in range(last - first):
                    list_quads(words[chain, first + k], k * (WORD // QUAD), flat, begin + k * (WORD // QUAD))
                kinds[chain, layer] = QUADS
                counts[chain, layer] = n_quads
                continue
            n = begin
            for k in range(first, last):
                word = words[chain, k]
                if kind == OFF:
                    word = np.uint32(~word & real[k])
                while word:
                    flat[n] = STRIP_BYTES * (WORD * (k - first) + trailing_zeros(word))
                    word = without_lowest(word)
                    n += 1
            kinds[chain, layer] = OFF if kind == OFF else ON
            counts[chain, layer] = n - begin


@compiled
def _cheapest(n_on: int, size: int, n_tables: int) -> int:
    """Which lines cost least."""
    shorter = min(n_on, size - n_on)
    if 3 * n_tables < 2 * shorter:
        return QUADS
    return ON if n_on == shorter else OFF
