"""The loop of `meltpoint.annealing.path`, fused, for one tile of chains.

Per step and chain: the weight is updated and the odd units are drawn, their rows are added up to the even units'
field, the even units are drawn, and their rows are added up to the odd units' field x. x serves the weight update
and the draw of the odd units, and so does exp(-t): a step costs one exponential per unit.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meltpoint.backends.numba.kernels.blocks import (
    PRODUCTS,
    draw_even,
    draw_groups,
    sum_slopes,
    weigh_and_draw_odd,
    weigh_odd,
)
from meltpoint.backends.numba.kernels.lists import Lists, list_lines, remember_listed, tables_cost_less
from meltpoint.backends.numba.kernels.packing import FLIPS, OFF, Feed, Layout, Packed, Side
from meltpoint.kernels.bits import WORD
from meltpoint.kernels.compiling import compiled, compiled_into_callers
from meltpoint.kernels.numerics import softplus
from meltpoint.kernels.rows import (
    GROUP,
    LINE,
    PAIR,
    QUAD,
    add_kept,
    add_kept_pairs,
    add_rows,
    add_tables,
    build_tables,
    empty_aligned,
)
from meltpoint.layers.unit import Floats

_LARGEST_STEP = 4.0  # |change of t| up to which 1 + z keeps its digits in float32
_LARGEST_PRODUCT = 400.0  # |log| of a step's product up to which it need not be taken in parts
_LARGEST_PENDING = 1e100  # carried from step to step: exp(±400) times this is a normal float64
_QUADS_AT_ONCE = 2 * WORD // QUAD
"""Quads whose states are in one word of 64 bits; their tables are in the first-level cache."""


class Chains(NamedTuple):
    """The chains of a tile, which the kernel changes in place. Weights are exp(log_weights) / pending."""

    words: NDArray[np.uint32]  # (chain, block) the even units as bits
    generators: NDArray[np.uint32]  # (chain, 4, LANES)
    log_weights: Floats
    pending: Floats  # (chain,): one logarithm serves many small steps


class SideWork(NamedTuple):
    """What is written for one side in each step."""

    sums: NDArray[Any]  # flat, chain after chain: the field as whole numbers
    floats: NDArray[Any]  # the same memory, for sums of floats
    bias: NDArray[Any]  # (unit,) at beta
    slope: NDArray[Any]  # (unit,) in the type of the bias
    lists: Lists

    @classmethod
    def of(cls, side: Side, other: Side, n_chains: int, real: np.dtype) -> "SideWork":
        sums = np.zeros(n_chains * side.feed.stride, side.feed.totals.dtype)
        lists = Lists.of(side.layout, n_chains, other.feed.integer)
        return cls(sums, sums.view(real), np.empty(side.slope.size, real), side.slope.astype(real), lists)


class Workspace(NamedTuple):
    """What is written in each step. Python allocates it: in the kernel that would take long to compile."""

    even: SideWork
    odd: SideWork
    odd_state: NDArray[np.uint32]  # (chain, block)
    none_on: NDArray[np.uint32]  # zeros
    products: Floats
    slopes: Floats
    site_sums: NDArray[Any]
    tables: NDArray[np.int16]

    @classmethod
    def of(cls, packed: Packed, n_chains: int) -> "Workspace":
        even, odd, real = packed.even, packed.odd, packed.real
        blocks = even.layout.real.size, odd.layout.real.size
        return cls(
            SideWork.of(even, odd, n_chains, real),
            SideWork.of(odd, even, n_chains, real),
            np.empty((n_chains, blocks[1]), np.uint32),
            np.zeros(max(blocks), np.uint32),
            np.empty(PRODUCTS),
            np.empty(n_chains),
            np.empty((packed.q or 0) * WORD, real),
            empty_aligned(_QUADS_AT_ONCE * 2**QUAD * LINE, np.dtype(np.int16)),
        )


@compiled
def run_tile(
    betas: np.ndarray,
    even: Side,
    odd: Side,
    reach: float,
    q: int | None,
    work: Workspace,
    frozen: np.ndarray,
    chains: Chains,
) -> None:
    """Take every chain of the tile through betas[0] … betas[-1], in place.

    `frozen` (block,) marks even units that keep their value. Unless q is None the even units are Potts sites of q
    states, laid out as in `OneHot`; where q is None, nothing is compiled for Potts sites.
    """
    words, _, log_weights, pending = chains
    n_chains, n_odd, n_even = words.shape[0], odd.slope.size, even.slope.size
    even_work, odd_work, odd_words, none_on, products, slopes, site_sums, tables = work
    even_blocks, odd_blocks = even.layout.real, odd.layout.real
    real, integer = odd_work.bias.dtype, odd.feed.integer
    for chain in range(n_chains):
        slopes[chain] = sum_slopes(even_work, chain, words, even_blocks.size)

    previous = betas[0]
    for i in range(betas.size):
        beta = betas[i]
        delta = beta - previous  # before the first move it is 0, and the weights gain exactly nothing
        last = i + 1 == betas.size
        add_up(odd.feed, n_odd, even.layout, words, none_on, i > 0, even_work.lists, tables, odd_work)
        _bias_at(beta, even.base_bias, even.slope, even_work.bias)
        _bias_at(beta, odd.base_bias, odd.slope, odd_work.bias)
        coarse = (
            abs(delta) * reach > _LARGEST_STEP or abs(delta) * reach * n_odd > PRODUCTS * _LARGEST_PRODUCT
        )
        small = abs(delta) * reach * n_odd < _LARGEST_PRODUCT
        factor = real.type(beta * odd.scale)
        # -d = minus_change * x + minus_delta * slope; a coarse step is weighed apart, so that its factors are 1.
        minus_delta = real.type(0.0 if coarse else -delta)
        minus_change = real.type(0.0 if coarse else -delta * odd.scale)
        for chain in range(n_chains):
            at = chain * odd.feed.stride
            gain = delta * slopes[chain]
            if coarse:
                gain += _coarse_change(
                    previous, beta, odd.scale, odd.base_bias, odd.slope, odd_work, integer, at
                )
            if last:
                factors = weigh_odd(
                    chains, chain, odd_work, integer, at, factor, minus_change, minus_delta, odd_blocks, odd_words,
                    products, odd_blocks.size,
                )  # fmt: skip
            else:
                factors = weigh_and_draw_odd(
                    chains, chain, odd_work, integer, at, factor, minus_change, minus_delta, odd_blocks, odd_words,
                    products, odd_blocks.size,
                )  # fmt: skip
            if small:
                pending[chain] *= factors
                if not 1 / _LARGEST_PENDING < pending[chain] < _LARGEST_PENDING:
                    gain -= math.log(pending[chain])
                    pending[chain] = 1.0
            else:
                for k in range(PRODUCTS):
                    gain -= math.log(products[k])
            log_weights[chain] += gain
        if last:
            break
        add_up(even.feed, n_even, odd.layout, odd_words, none_on, i > 0, odd_work.lists, tables, even_work)
        factor = real.type(beta * even.scale)
        for chain in range(n_chains):
            at = chain * even.feed.stride
            if q is None:
                slopes[chain] = draw_even(
                    chains, chain, even_work, integer, at, factor, even_blocks, frozen, even_blocks.size
                )
            else:
                slopes[chain] = draw_groups(
                    chains, chain, even_work, integer, at, factor, even_blocks, frozen, site_sums, q, even_blocks.size
                )  # fmt: skip
        previous = beta


@compiled_into_callers
def _bias_at(beta: float, base_bias: np.ndarray, slope: np.ndarray, out: np.ndarray) -> None:
    for j in range(out.size):
        out[j] = base_bias[j] + beta * slope[j]


@compiled_into_callers
def _coarse_change(
    previous: float,
    beta: float,
    scale: float,
    base_bias: np.ndarray,
    slope: np.ndarray,
    work: SideWork,
    integer: bool,
    first: int,
) -> float:
    """Sum over odd units of softplus(t at beta) - softplus(t at previous), for steps of any size."""
    total, sums, floats = 0.0, work.sums, work.floats
    for j in range(slope.size):
        field = float(sums[first + j]) if integer else float(floats[first + j])
        rate = scale * field + slope[j]
        total += softplus(base_bias[j] + beta * rate) - softplus(base_bias[j] + previous * rate)
    return total


@compiled_into_callers
def add_up(
    feed: Feed,
    n_fed: int,
    source: Layout,
    words: np.ndarray,
    none_on: np.ndarray,
    later: bool,
    lists: Lists,
    tables: np.ndarray,
    work: SideWork,
) -> None:
    """Sums (chain * unit of a side,) of the weights of the source units (chain, block) that are on, in its work.

    `later` says whether it holds those of the words that were given before.
    """
    later = later and feed.integer
    if feed.integer and tables_cost_less(words, lists.listed, source, n_fed, none_on, later):
        _add_tables(feed, source, words, tables, work.sums)
        remember_listed(words, lists.listed)
    else:
        list_lines(words, source, none_on, later, lists)
        if feed.integer:
            _add_integers(feed, source, lists, work.sums)
        else:
            _add_floats(feed, source, lists, work.floats)


@compiled_into_callers
def _add_floats(feed: Feed, source: Layout, lists: Lists, sums: np.ndarray) -> None:
    """Add up the rows that `list_lines` found, anew; each layer is one section."""
    # Fields of a tuple that are arrays cost a reference count wherever they are read.
    _, weights, strips, _, totals, _, stride = feed
    lines, kinds, places, _, _ = lists
    width = totals.shape[1]
    for strip in range(strips.shape[0]):
        rows, first_layer, end_layer, column, _, _ = strips[strip]
        for layer in range(first_layer, end_layer):
            for chain in range(kinds.shape[0]):
                at = chain * stride + column
                fresh, sign, listed = layer == first_layer, 1, 0
                if kinds[chain, layer] == OFF:
                    # Element by element: for whole arrays Numba compiles two seconds of error messages.
                    for j in range(width):
                        old = 0.0 if fresh else sums[at + j]
                        sums[at + j] = totals[1 + strip * kinds.shape[1] + layer, j] + old
                    fresh, sign, listed = False, -1, 2
                first, count = places[chain, layer, listed], places[chain, layer, listed + 1]
                add_rows(weights, rows, lines, first, count, sign, fresh, sums, at)
            rows += (source.starts[layer + 1] - source.starts[layer] + 1) * width


@compiled_into_callers
def _add_integers(feed: Feed, source: Layout, lists: Lists, sums: np.ndarray) -> None:
    """The same, or correct the sums, section by section, so that their rows stay in the first-level cache."""
    weights, _, strips, totals, _, _, stride = feed
    lines, kinds, places, whole, _ = lists
    starts, sections = source.starts, source.sections
    for strip in range(strips.shape[0]):
        rows, first_layer, end_layer, column, group, n_lines = strips[strip]
        width = n_lines * LINE
        for layer in range(first_layer, end_layer):
            begin, end = sections[layer], sections[layer + 1]
            together = end - begin if whole[layer] else 1
            for section in range(begin, end, together):
                last = section + together - 1
                for chain in range(kinds.shape[0]):
                    at = chain * stride + column
                    kind = kinds[chain, layer]
                    added, removed = places[chain, section, 0], places[chain, section, 2]
                    n_added = places[chain, last, 0] + places[chain, last, 1] - added
                    n_removed = places[chain, last, 2] + places[chain, last, 3] - removed
                    base = -1
                    if section == begin and kind != FLIPS:
                        row = 1 + strip * kinds.shape[1] + layer if kind == OFF else 0
                        if layer == first_layer:
                            base = row * totals.shape[1]
                        elif kind == OFF:
                            for j in range(width):
                                sums[at + j] += totals[row, j]
                    if n_lines == PAIR:
                        add_kept_pairs(
                            weights, rows, lines, added, n_added, removed, n_removed, group, totals, base, sums, at
                        )  # fmt: skip
                    else:
                        add_kept(
                            weights, rows, lines, added, n_added, removed, n_removed, group, totals, base, sums, at
                        )  # fmt: skip
            rows += (starts[layer + 1] - starts[layer] + 1) * width


@compiled_into_callers
def _add_tables(feed: Feed, source: Layout, words: np.ndarray, tables: np.ndarray, sums: np.ndarray) -> None:
    """The same from tables, anew: a quad's are made for one cache line of columns, and used by all chains."""
    strips, stride, weights = feed.strips, feed.stride, feed.weights
    starts, sizes = source.starts, source.sizes
    for strip in range(strips.shape[0]):
        offset, first_layer, end_layer, column, _, n_lines = strips[strip]
        for line in range(n_lines):
            rows = offset + line * LINE
            for layer in range(first_layer, end_layer):
                block, end = starts[layer] // WORD, starts[layer + 1] // WORD
                n_quads = (sizes[layer] + GROUP - 1) // GROUP * (GROUP // QUAD)
                for low in range(0, n_quads, _QUADS_AT_ONCE):
                    count = min(n_quads - low, _QUADS_AT_ONCE)
                    build_tables(weights, rows + low * QUAD * n_lines * LINE, n_lines * LINE, count, tables)
                    k = block + low * QUAD // WORD
                    fresh = layer == first_layer and low == 0
                    for chain in range(words.shape[0]):
                        states = np.uint64(words[chain, k])
                        if k + 1 < end:
                            states |= np.uint64(words[chain, k + 1]) << np.uint64(WORD)
                        add_tables(tables, states, count, fresh, sums, chain * stride + column + line * LINE)
                rows += (starts[layer + 1] - starts[layer] + 1) * n_lines * LINE
