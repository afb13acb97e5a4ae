"""The loop of `meltpoint.backends.reference`, fused, for one tile of chains.

Per step and chain: the weight is updated and the odd units are drawn, their rows are added up to the even units'
field, the even units are drawn, and their rows are added up to the odd units' field x. x serves the weight update
and the draw of the odd units, and so does exp(-t): a step costs one exponential per unit.
"""

import math

import numpy as np

from meltpoint.backends.numba.kernels.blocks import (
    PRODUCTS,
    draw_even,
    sum_slopes,
    weigh_and_draw_odd,
    weigh_odd,
)
from meltpoint.backends.numba.kernels.groups import draw_groups
from meltpoint.backends.numba.kernels.lists import ROOM, list_lines, remember_listed, tables_cost_less
from meltpoint.backends.numba.kernels.packing import CHEAPEST, FLIPS, OFF, QUADS, Side
from meltpoint.kernels.bits import SLACK, WORD
from meltpoint.kernels.compiling import compiled, compiled_into_callers
from meltpoint.kernels.numerics import softplus
from meltpoint.kernels.rows import (
    add_columns,
    add_kept,
    add_kept_pairs,
    add_rows,
    add_tables,
    add_wide_rows,
    add_wide_tables,
)
from meltpoint.kernels.strips import PAIR, QUAD

_LARGEST_STEP = 4.0  # |change of t| up to which 1 + z keeps its digits in float32
_LARGEST_PRODUCT = 400.0  # |log| of a step's product up to which it need not be taken in parts
_LARGEST_CARRY = 1e100  # carried from step to step: exp(±400) times this is a normal float64


@compiled
def run_tile(
    betas: np.ndarray,
    even: Side,
    odd: Side,
    reach: float,
    q: int | None,
    tables: bool | None,
    real: np.ndarray,
    frozen: np.ndarray,
    state: np.ndarray,
    generators: np.ndarray,
    log_weights: np.ndarray,
    carried: np.ndarray,
) -> None:
    """Take every chain of the tile through betas[0] … betas[-1], in place.

    `state` (chain, block of even units) holds the units as bits, `generators` (chain, 4, LANES) the streams;
    `frozen` (block,) marks even units that keep their value. The weights are exp(log_weights) / carried, both
    (chain,): one logarithm serves many small steps. `real` is an empty array whose type is that of the units'
    inputs. Unless q is None the even units are Potts sites of q states, laid out as in `annealing.one_hot`. Where q or
    `tables` is None, nothing is compiled for Potts sites or for tables.
    """
    n_chains = state.shape[0]
    n_even, n_odd = even.starts[-1], odd.starts[-1]
    # Fields are flat, chain after chain; where they are sums of parts, there is one for all chains in turn.
    # np.zeros and np.ones take Numba three times as long to compile as np.empty and a loop.
    even_parts = np.empty(n_chains * even.stride, even.totals.dtype)
    odd_parts = np.empty(n_chains * odd.stride, odd.totals.dtype)
    for k in range(even_parts.size):
        even_parts[k] = 0
    for k in range(odd_parts.size):
        odd_parts[k] = 0
    even_stride, odd_stride = 0 if even.parts else even.stride, 0 if odd.parts else odd.stride
    even_field = np.empty(n_even + even.totals.shape[1], even_parts.dtype) if even.parts else even_parts
    odd_field = np.empty(n_odd + odd.totals.shape[1], odd_parts.dtype) if odd.parts else odd_parts
    even_lines = np.empty(n_chains * (n_even + ROOM * (even.edges.size - 1)) + SLACK, np.uint32)
    odd_lines = np.empty(n_chains * (n_odd + ROOM * (odd.edges.size - 1)) + SLACK, np.uint32)
    # These are written before they are read: by list_lines, and by the draw.
    even_kinds = np.empty((n_chains, even.sizes.size), np.int64)
    odd_kinds = np.empty((n_chains, odd.sizes.size), np.int64)
    even_places = np.empty((n_chains, even.edges.size - 1, 4), np.int64)
    odd_places = np.empty((n_chains, odd.edges.size - 1, 4), np.int64)
    even_whole, odd_whole = np.empty(even.sizes.size, np.bool_), np.empty(odd.sizes.size, np.bool_)
    even_tabled = odd.tabled and (even.lists == CHEAPEST or even.lists == QUADS)
    odd_tabled = even.tabled and (odd.lists == CHEAPEST or odd.lists == QUADS)
    even_chooses = even_tabled and odd.for_dense and even.lists == CHEAPEST
    odd_chooses = odd_tabled and even.for_dense and odd.lists == CHEAPEST
    even_bias = np.empty(n_even, real.dtype)
    odd_bias = np.empty(n_odd, real.dtype)
    even_slope, odd_slope = even.slope.astype(real.dtype), odd.slope.astype(real.dtype)
    odd_state = np.empty((n_chains, n_odd // WORD), np.uint32)
    even_listed = np.empty((n_chains if odd.kept else 0, state.shape[1]), np.uint32)
    odd_listed = np.empty((n_chains if even.kept else 0, odd_state.shape[1]), np.uint32)
    none_on = np.empty(max(even.real.size, odd.real.size), np.uint32)
    for k in range(none_on.size):
        none_on[k] = 0
    products = np.empty(PRODUCTS)
    slopes = np.empty(n_chains)
    sums = np.empty(0 if q is None else q * WORD, real.dtype)
    for chain in range(n_chains):
        slopes[chain] = sum_slopes(even_slope, chain, state, even.real.size)

    previous = betas[0]
    for i in range(betas.size):
        beta = betas[i]
        delta = beta - previous  # before the first move it is 0, and the weights gain exactly nothing
        last = i + 1 == betas.size
        # Functions are given the arrays they need: a whole Side costs as much as a step of several chains.
        if tables is not None and even_chooses:
            even_tabled = tables_cost_less(state, even_listed, even.sizes[0], none_on, i > 0)
        if tables is not None and even_tabled:
            gather_tables(
                odd.quads, odd.strips, odd.table_width, odd.stride, odd.wide, odd.kept,
                even.starts, even.sizes, state, odd_parts,
            )  # fmt: skip
            remember_listed(state, even_listed)
        if not even_tabled:
            list_lines(
                state, even_listed, even.starts, even.sizes, even.sections, even.edges, even.real, none_on,
                even.lists, odd.kept and i > 0, even_lines, even_kinds, even_places, even_whole,
            )  # fmt: skip
            gather(
                odd.weights, odd.strips, odd.totals, odd.stride, odd.wide, odd.kept,
                even.sections, even_lines, even_kinds, even_places, even_whole, odd_parts,
            )  # fmt: skip
        _bias_at(beta, even.base_bias, even.slope, even_bias)
        _bias_at(beta, odd.base_bias, odd.slope, odd_bias)
        coarse = (
            abs(delta) * reach > _LARGEST_STEP or abs(delta) * reach * n_odd > PRODUCTS * _LARGEST_PRODUCT
        )
        small = abs(delta) * reach * n_odd < _LARGEST_PRODUCT
        factor = real.dtype.type(beta * odd.scale)
        # -d = minus_change * x + minus_delta * slope; a coarse step is weighed apart, so that its factors are 1.
        minus_delta = real.dtype.type(0.0 if coarse else -delta)
        minus_change = real.dtype.type(0.0 if coarse else -delta * odd.scale)
        for chain in range(n_chains):
            at = chain * odd_stride
            if odd.parts:
                add_parts(odd.strips, odd_parts, chain * odd.stride, odd_field)
            gain = delta * slopes[chain]
            if coarse:
                gain += _coarse_change(
                    previous, beta, odd.scale, odd.base_bias, odd.slope, odd_field, at, n_odd
                )
            if last:
                factors = weigh_odd(
                    generators, chain, odd_field, at, odd_bias, odd_slope,
                    factor, minus_change, minus_delta, odd.real, odd_state, products, odd.real.size,
                )  # fmt: skip
            else:
                factors = weigh_and_draw_odd(
                    generators, chain, odd_field, at, odd_bias, odd_slope,
                    factor, minus_change, minus_delta, odd.real, odd_state, products, odd.real.size,
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
            odd_tabled = tables_cost_less(odd_state, odd_listed, odd.sizes[0], none_on, i > 0)
        if tables is not None and odd_tabled:
            gather_tables(
                even.quads, even.strips, even.table_width, even.stride, even.wide, even.kept,
                odd.starts, odd.sizes, odd_state, even_parts,
            )  # fmt: skip
            remember_listed(odd_state, odd_listed)
        if not odd_tabled:
            list_lines(
                odd_state, odd_listed, odd.starts, odd.sizes, odd.sections, odd.edges, odd.real, none_on,
                odd.lists, even.kept and i > 0, odd_lines, odd_kinds, odd_places, odd_whole,
            )  # fmt: skip
            gather(
                even.weights, even.strips, even.totals, even.stride, even.wide, even.kept,
                odd.sections, odd_lines, odd_kinds, odd_places, odd_whole, even_parts,
            )  # fmt: skip
        factor = real.dtype.type(beta * even.scale)
        for chain in range(n_chains):
            if even.parts:
                add_parts(even.strips, even_parts, chain * even.stride, even_field)
            if q is None:
                slopes[chain] = draw_even(
                    generators, chain, even_field, chain * even_stride, even_bias, even_slope, factor,
                    even.real, frozen, state, even.real.size,
                )  # fmt: skip
            else:
                slopes[chain] = draw_groups(
                    generators, chain, even_field, chain * even_stride, even_bias, even_slope, factor,
                    even.real, frozen, state, sums, q, even.real.size,
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
def gather(
    weights: np.ndarray,
    strips: np.ndarray,
    totals: np.ndarray,
    stride: int,
    wide: bool,
    kept: bool,
    sections: np.ndarray,
    lines: np.ndarray,
    kinds: np.ndarray,
    places: np.ndarray,
    whole: np.ndarray,
    field: np.ndarray,
) -> None:
    """Field (chain * unit of a side,): the sum of the weights of the source units that are on, anew or corrected.

    The first parameters are the side's own, see `Side`; `sections` are those of the source, and `list_lines` gave the
    rest. Sums that are kept are added up section by section, so that their rows stay in the first-level cache; sources
    of others have one section for each layer.
    """
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
                if wide:
                    add_wide_rows(weights, rows, lines, added, n_added, sign, fresh, field, at)
                else:
                    add_rows(weights, rows, lines, added, n_added, sign, fresh, field, at)


@compiled_into_callers
def gather_tables(
    quads: np.ndarray,
    strips: np.ndarray,
    width: int,
    stride: int,
    wide: bool,
    kept: bool,
    starts: np.ndarray,
    sizes: np.ndarray,
    words: np.ndarray,
    field: np.ndarray,
) -> None:
    """The same from tables of the source units (chain, block), two words at a time."""
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
                if wide:
                    add_wide_tables(quads, begin, states, count, fresh, field, at)
                else:
                    add_tables(quads, begin, states, count, fresh, field, at)


@compiled_into_callers
def add_parts(strips: np.ndarray, parts: np.ndarray, first: int, field: np.ndarray) -> None:
    """Field (unit,) of a chain: the sum of what the strips that feed a unit have at their places from `first` on."""
    for j in range(field.size):
        field[j] = 0
    for strip in range(strips.shape[0]):
        add_columns(parts, first + strips[strip, 2], field, strips[strip, 5])
