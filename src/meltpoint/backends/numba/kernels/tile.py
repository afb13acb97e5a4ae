"""The loop of `meltpoint.backends.reference`, fused, for one tile of chains.

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
from meltpoint.backends.numba.kernels.packing import CHEAPEST, FLIPS, OFF, QUADS, Feed, Layout, Packed, Side
from meltpoint.kernels.bits import WORD
from meltpoint.kernels.compiling import compiled, compiled_into_callers
from meltpoint.kernels.numerics import softplus
from meltpoint.kernels.rows import (
    PAIR,
    QUAD,
    add_columns,
    add_kept,
    add_kept_pairs,
    add_rows,
    add_tables,
)
from meltpoint.layers.unit import Floats

_LARGEST_STEP = 4.0  # |change of t| up to which 1 + z keeps its digits in float32
_LARGEST_PRODUCT = 400.0  # |log| of a step's product up to which it need not be taken in parts
_LARGEST_CARRY = 1e100  # carried from step to step: exp(±400) times this is a normal float64


class Workspace(NamedTuple):
    """What is written in each step. Python allocates it: in the kernel that would take long to compile.

    Fields are flat, chain after chain; where they are sums of parts, there is one for all chains in turn.
    """

    even_parts: NDArray[Any]
    odd_parts: NDArray[Any]
    even_field: NDArray[Any]
    odd_field: NDArray[Any]
    even_bias: NDArray[Any]  # (unit,) at beta
    odd_bias: NDArray[Any]
    even_slope: NDArray[Any]  # (unit,) in the type of the bias
    odd_slope: NDArray[Any]
    even_lists: Lists
    odd_lists: Lists
    odd_state: NDArray[np.uint32]  # (chain, block)
    none_on: NDArray[np.uint32]  # zeros
    products: Floats
    slopes: Floats
    sums: NDArray[Any]

    @classmethod
    def of(cls, packed: Packed, n_chains: int) -> "Workspace":
        """That of a tile."""
        even, odd, real = packed.even, packed.odd, packed.real

        def parts(side: Side) -> NDArray[Any]:
            return np.zeros(n_chains * side.feed.stride, side.feed.totals.dtype)

        def field(side: Side, of: NDArray[Any]) -> NDArray[Any]:
            return np.zeros(side.slope.size + side.feed.totals.shape[1], of.dtype) if side.parts else of

        even_parts, odd_parts = parts(even), parts(odd)
        return cls(
            even_parts,
            odd_parts,
            field(even, even_parts),
            field(odd, odd_parts),
            np.empty(even.slope.size, real),
            np.empty(odd.slope.size, real),
            even.slope.astype(real),
            odd.slope.astype(real),
            Lists.of(even.layout, n_chains, odd.feed.kept),
            Lists.of(odd.layout, n_chains, even.feed.kept),
            np.empty((n_chains, odd.layout.real.size), np.uint32),
            np.zeros(max(even.layout.real.size, odd.layout.real.size), np.uint32),
            np.empty(PRODUCTS),
            np.empty(n_chains),
            np.empty((packed.q or 0) * WORD, real),
        )


@compiled
def run_tile(
    betas: np.ndarray,
    even: Side,
    odd: Side,
    reach: float,
    q: int | None,
    tables: bool | None,
    work: Workspace,
    frozen: np.ndarray,
    state: np.ndarray,
    generators: np.ndarray,
    log_weights: np.ndarray,
    carried: np.ndarray,
) -> None:
    """Take every chain of the tile through betas[0] … betas[-1], in place.

    `state` (chain, block of even units) holds the units as bits, `generators` (chain, 4, LANES) the streams;
    `frozen` (block,) marks even units that keep their value. The weights are exp(log_weights) / carried, both
    (chain,): one logarithm serves many small steps. Unless q is None the even units are Potts sites of q states, laid
    out as in `OneHot`. Where q or `tables` is None, nothing is compiled for Potts sites or for tables.
    """
    n_chains, n_odd = state.shape[0], odd.slope.size
    even_stride, odd_stride = 0 if even.parts else even.feed.stride, 0 if odd.parts else odd.feed.stride
    even_parts, even_field, even_bias, even_slope = (
        work.even_parts,
        work.even_field,
        work.even_bias,
        work.even_slope,
    )
    odd_parts, odd_field, odd_bias, odd_slope = work.odd_parts, work.odd_field, work.odd_bias, work.odd_slope
    odd_state, products, slopes, sums = work.odd_state, work.products, work.slopes, work.sums
    even_listed, odd_listed, none_on = work.even_lists.listed, work.odd_lists.listed, work.none_on
    even_real, odd_real, real = even.layout.real, odd.layout.real, even_bias.dtype
    even_tabled = odd.tabled and (even.layout.lists == CHEAPEST or even.layout.lists == QUADS)
    odd_tabled = even.tabled and (odd.layout.lists == CHEAPEST or odd.layout.lists == QUADS)
    even_chooses = even_tabled and odd.for_dense and even.layout.lists == CHEAPEST
    odd_chooses = odd_tabled and even.for_dense and odd.layout.lists == CHEAPEST
    for chain in range(n_chains):
        slopes[chain] = sum_slopes(even_slope, chain, state, even_real.size)

    previous = betas[0]
    for i in range(betas.size):
        beta = betas[i]
        delta = beta - previous  # before the first move it is 0, and the weights gain exactly nothing
        last = i + 1 == betas.size
        # Functions are given the arrays they need: a whole Side costs as much as a step of several chains.
        if tables is not None and even_chooses:
            even_tabled = tables_cost_less(state, even_listed, even.layout.sizes[0], none_on, i > 0)
        if tables is not None and even_tabled:
            gather_tables(odd.feed, even.layout, state, odd_parts)
            remember_listed(state, even_listed)
        if not even_tabled:
            list_lines(state, even.layout, none_on, odd.feed.kept and i > 0, work.even_lists)
            gather(odd.feed, even.layout.sections, work.even_lists, odd_parts)
        _bias_at(beta, even.base_bias, even.slope, even_bias)
        _bias_at(beta, odd.base_bias, odd.slope, odd_bias)
        coarse = (
            abs(delta) * reach > _LARGEST_STEP or abs(delta) * reach * n_odd > PRODUCTS * _LARGEST_PRODUCT
        )
        small = abs(delta) * reach * n_odd < _LARGEST_PRODUCT
        factor = real.type(beta * odd.scale)
        # -d = minus_change * x + minus_delta * slope; a coarse step is weighed apart, so that its factors are 1.
        minus_delta = real.type(0.0 if coarse else -delta)
        minus_change = real.type(0.0 if coarse else -delta * odd.scale)
        for chain in range(n_chains):
            at = chain * odd_stride
            if odd.parts:
                add_parts(odd.feed.strips, odd_parts, chain * odd.feed.stride, odd_field)
            gain = delta * slopes[chain]
            if coarse:
                gain += _coarse_change(
                    previous, beta, odd.scale, odd.base_bias, odd.slope, odd_field, at, n_odd
                )
            if last:
                factors = weigh_odd(
                    generators, chain, odd_field, at, odd_bias, odd_slope,
                    factor, minus_change, minus_delta, odd_real, odd_state, products, odd_real.size,
                )  # fmt: skip
            else:
                factors = weigh_and_draw_odd(
                    generators, chain, odd_field, at, odd_bias, odd_slope,
                    factor, minus_change, minus_delta, odd_real, odd_state, products, odd_real.size,
                )  # fmt: skip
            if small:
                carried[chain] *= factors
                if not 1 / _LARGEST_CARRY < carried[chain] < _LARGEST_CARRY:
                    gain -= math.log(carried[chain])
                    carried[chain] = 1.0
            else:
                for k in range(PRODUCTS):
                    gain -= math.log(products[k])
            log_weights[chain] += gain
        if last:
            break
        if tables is not None and odd_chooses:
            odd_tabled = tables_cost_less(odd_state, odd_listed, odd.layout.sizes[0], none_on, i > 0)
        if tables is not None and odd_tabled:
            gather_tables(even.feed, odd.layout, odd_state, even_parts)
            remember_listed(odd_state, odd_listed)
        if not odd_tabled:
            list_lines(odd_state, odd.layout, none_on, even.feed.kept and i > 0, work.odd_lists)
            gather(even.feed, odd.layout.sections, work.odd_lists, even_parts)
        factor = real.type(beta * even.scale)
        for chain in range(n_chains):
            if even.parts:
                add_parts(even.feed.strips, even_parts, chain * even.feed.stride, even_field)
            if q is None:
                slopes[chain] = draw_even(
                    generators, chain, even_field, chain * even_stride, even_bias, even_slope, factor,
                    even_real, frozen, state, even_real.size,
                )  # fmt: skip
            else:
                slopes[chain] = draw_groups(
                    generators, chain, even_field, chain * even_stride, even_bias, even_slope, factor,
                    even_real, frozen, state, sums, q, even_real.size,
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
    field: np.ndarray,
    first: int,
    size: int,
) -> float:
    """Sum over odd units of softplus(t at beta) - softplus(t at previous), for steps of any size."""
    total = 0.0
    for j in range(size):
        rate = scale * field[first + j] + slope[j]
        total += softplus(base_bias[j] + beta * rate) - softplus(base_bias[j] + previous * rate)
    return total


@compiled_into_callers
def gather(side: Feed, sections: np.ndarray, found: Lists, field: np.ndarray) -> None:
    """Field (chain * unit of a side,): the sum of the weights of the source units that are on, anew or corrected.

    `list_lines` found the lines. Sums that are kept are added up section by section, so that their rows stay in the
    first-level cache; sources of others have one section for each layer.
    """
    weights, strips, totals, stride = side.weights, side.strips, side.totals, side.stride
    kept = side.kept
    lines, kinds, places, whole = found.lines, found.kinds, found.places, found.whole
    width = totals.shape[1]
    for strip in range(strips.shape[0]):
        rows, layer, column, _, first_to_feed, _, group, n_lines = strips[strip]
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
                if kept:
                    base = -1
                    if section == begin and kind != FLIPS:
                        base = (1 + strip) * width if kind == OFF else 0
                    if n_lines == PAIR:
                        add_kept_pairs(
                            weights, rows, lines, added, n_added, removed, n_removed, group, totals, base, field, at
                        )  # fmt: skip
                    else:
                        add_kept(
                            weights, rows, lines, added, n_added, removed, n_removed, group, totals, base, field, at
                        )  # fmt: skip
                    continue
                fresh, sign = first_to_feed == 1, 1
                if kind == OFF:
                    # Element by element: for whole arrays Numba compiles two seconds of error messages.
                    for j in range(width):
                        field[at + j] = totals[1 + strip, j] + (0 if fresh else field[at + j])
                    fresh, sign, added, n_added = False, -1, removed, n_removed
                add_rows(weights, rows, lines, added, n_added, sign, fresh, field, at)


@compiled_into_callers
def gather_tables(side: Feed, source: Layout, words: np.ndarray, field: np.ndarray) -> None:
    """The same from tables of the source units (chain, block), two words at a time."""
    quads, strips, width, stride, kept = side.quads, side.strips, side.table_width, side.stride, side.kept
    starts, sizes = source.starts, source.sizes
    for strip in range(strips.shape[0]):
        _, layer, column, table, first_to_feed, _, _, n_lines = strips[strip]
        block, n_words = starts[layer] // WORD, (starts[layer + 1] - starts[layer]) // WORD
        n_quads = n_words * (WORD // QUAD) if kept else (sizes[layer] + QUAD - 1) // QUAD
        n_tables = n_lines if kept else 1  # of sums that are kept each cache line has its own
        for item in range(n_tables * words.shape[0]):
            line, chain = item // words.shape[0], item % words.shape[0]
            at = chain * stride + column + line * width
            own_table = table + line * n_quads * 2**QUAD * width
            for k in range(0, n_words, 2):
                states = np.uint64(words[chain, block + k])
                if k + 1 < n_words:
                    states |= np.uint64(words[chain, block + k + 1]) << np.uint64(WORD)
                first = k * (WORD // QUAD)
                count = min(n_quads - first, 2 * WORD // QUAD)
                begin = own_table + first * 2**QUAD * width
                fresh = first_to_feed == 1 and k == 0
                add_tables(quads, begin, states, count, fresh, field, at)


@compiled_into_callers
def add_parts(strips: np.ndarray, parts: np.ndarray, first: int, field: np.ndarray) -> None:
    """Field (unit,) of a chain: the sum of what the strips that feed a unit have at their places from `first` on."""
    for j in range(field.size):
        field[j] = 0
    for strip in range(strips.shape[0]):
        add_columns(parts, first + strips[strip, 2], field, strips[strip, 5])
