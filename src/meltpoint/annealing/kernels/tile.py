"""The loop of `meltpoint.annealing.reference`, fused, for one tile of chains.

Per step and chain: the odd units are drawn, the rows of the odd units that are on (or off, whichever are
fewer) are added up to the even units' field, the even units are drawn, their rows are added up to the odd
units' field x, and the weight is updated. x serves the weight update and the next draw of the odd units, and
so does exp(-t), so that a step costs one exponential per unit.
"""

import math

import numpy as np
from numba import njit

from meltpoint.annealing.kernels.bits import WORD, count_ones, trailing_zeros, without_lowest, word_of
from meltpoint.annealing.kernels.numerics import LIMIT, exp, expm1, multiply_up
from meltpoint.annealing.kernels.packing import Side
from meltpoint.annealing.kernels.rows import STRIP_BYTES, add_rows
from meltpoint.annealing.kernels.xoshiro import fill_uniforms

_LARGEST_STEP = 4.0  # |change of t| up to which 1 + z keeps its digits in float32
_LARGEST_PRODUCT = 600.0  # exp(±600) is a normal float64


@njit(nogil=True, cache=True, error_model="numpy")
def run_tile(
    betas: np.ndarray,
    even: Side,
    odd: Side,
    reach: float,
    frozen: np.ndarray,
    uniforms: np.ndarray,
    state: np.ndarray,
    generators: np.ndarray,
    log_weights: np.ndarray,
) -> None:
    """Take every chain of the tile through betas[0] … betas[-1], in place.

    `state` (chain, padded even unit) holds zeros and ones, `generators` (chain, 4, LANES) the streams,
    `log_weights` (chain,) is added to; `frozen` (padded even unit,) marks units that keep their value.
    `uniforms` is scratch for one side's units; its type is the precision of the fields.
    """
    n_chains = state.shape[0]
    n_even, n_odd = even.starts[-1], odd.starts[-1]
    even_field = np.empty((n_chains, n_even), even.totals.dtype)
    odd_field = np.empty((n_chains, n_odd), odd.totals.dtype)
    even_lines = np.empty((n_chains, n_even), np.uint32)
    odd_lines = np.empty((n_chains, n_odd), np.uint32)
    even_counts = np.empty((n_chains, even.sizes.size), np.int64)
    odd_counts = np.empty((n_chains, odd.sizes.size), np.int64)
    even_bias = np.empty(n_even, uniforms.dtype)
    odd_bias = np.empty(n_odd, uniforms.dtype)
    decay = np.empty(max(n_even, n_odd), uniforms.dtype)
    ratio = np.empty(n_odd, uniforms.dtype)
    products = np.empty(4)
    odd_slope = odd.slope.astype(uniforms.dtype)
    on = np.empty(n_odd, np.uint8)

    for chain in range(n_chains):
        _list_lines(state[chain], even, even_lines[chain], even_counts[chain])
    _gather(odd, even, even_lines, even_counts, odd_field)
    previous = betas[0]
    for i in range(betas.size):
        beta = betas[i]
        _bias_at(beta, even, even_bias)
        _bias_at(beta, odd, odd_bias)
        for chain in range(n_chains):
            _decay(beta, odd, odd_bias, odd_field[chain], decay)
            # Before the first move beta equals previous, and this adds exactly nothing.
            bias_part = _sum_listed(even.slope, even, even_lines[chain], even_counts[chain])
            log_weights[chain] += (beta - previous) * bias_part
            log_weights[chain] += _softplus_change(
                previous, beta, odd, odd_slope, reach, odd_field[chain], decay, ratio, products
            )
            if i + 1 == betas.size:
                continue
            fill_uniforms(generators, chain, uniforms, n_odd)
            for j in range(n_odd):
                on[j] = odd.real[j] & np.uint8(uniforms[j] + uniforms[j] * decay[j] <= 1)
            _list_lines(on, odd, odd_lines[chain], odd_counts[chain])
        if i + 1 == betas.size:
            break
        _gather(even, odd, odd_lines, odd_counts, even_field)
        for chain in range(n_chains):
            _decay(beta, even, even_bias, even_field[chain], decay)
            fill_uniforms(generators, chain, uniforms, n_even)
            units = state[chain]
            for j in range(n_even):
                drawn = even.real[j] & np.uint8(uniforms[j] + uniforms[j] * decay[j] <= 1)
                units[j] = (units[j] & frozen[j]) | (drawn & ~frozen[j])
            _list_lines(units, even, even_lines[chain], even_counts[chain])
        _gather(odd, even, even_lines, even_counts, odd_field)
        previous = beta


@njit(nogil=True, cache=True, error_model="numpy")
def _bias_at(beta: float, side: Side, out: np.ndarray) -> None:
    for j in range(out.size):
        out[j] = side.base_bias[j] + beta * side.slope[j]


@njit(nogil=True, cache=True, error_model="numpy")
def _decay(beta: float, side: Side, bias: np.ndarray, field: np.ndarray, out: np.ndarray) -> None:
    """exp(-t) of every unit's input t = beta * x + bias: a unit is on with probability 1 / (1 + exp(-t))."""
    factor = out.dtype.type(beta * side.scale)
    limit = out.dtype.type(LIMIT)
    for j in range(field.size):
        t = factor * out.dtype.type(field[j]) + bias[j]
        t = t if t < limit else limit
        t = t if t > -limit else -limit
        out[j] = exp(-t)


@njit(nogil=True, cache=True, error_model="numpy")
def _sum_listed(values: np.ndarray, side: Side, lines: np.ndarray, counts: np.ndarray) -> float:
    """Sum of values over the units that are on, from the lists of `_list_lines`."""
    total = 0.0
    for layer in range(side.sizes.size):
        start, count = side.starts[layer], counts[layer]
        listed = -count - 1 if count < 0 else count
        a, b, c, d = 0.0, 0.0, 0.0, 0.0  # four sums: additions need not wait for each other
        k = start
        while k + 4 <= start + listed:
            a += values[start + lines[k] // STRIP_BYTES]
            b += values[start + lines[k + 1] // STRIP_BYTES]
            c += values[start + lines[k + 2] // STRIP_BYTES]
            d += values[start + lines[k + 3] // STRIP_BYTES]
            k += 4
        while k < start + listed:
            a += values[start + lines[k] // STRIP_BYTES]
            k += 1
        part = (a + b) + (c + d)
        total += part if count >= 0 else side.slope_totals[layer] - part
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _softplus_change(
    previous: float,
    beta: float,
    odd: Side,
    slope: np.ndarray,
    reach: float,
    field: np.ndarray,
    decay: np.ndarray,
    ratio: np.ndarray,
    products: np.ndarray,
) -> float:
    """Sum over odd units of softplus(t at beta) - softplus(t at previous), given exp(-t) at beta."""
    delta = beta - previous
    total = 0.0
    if abs(delta) * reach > _LARGEST_STEP or abs(delta) * reach * field.size > 4 * _LARGEST_PRODUCT:
        for j in range(field.size):
            x = odd.scale * field[j]
            total += _softplus(odd.base_bias[j] + beta * (x + odd.slope[j]))
            total -= _softplus(odd.base_bias[j] + previous * (x + odd.slope[j]))
        return total
    # softplus(t) - softplus(t - d) = -log(1 + z), z = sigmoid(t) * expm1(-d), which keeps the digits of small d.
    one = ratio.dtype.type(1)
    factor = ratio.dtype.type(-delta * odd.scale)
    minus_delta = ratio.dtype.type(-delta)
    for j in range(field.size):
        d = factor * ratio.dtype.type(field[j]) + minus_delta * slope[j]
        ratio[j] = expm1(d) / (one + decay[j])
    multiply_up(ratio, field.size, products)
    for k in range(4):
        total -= math.log(products[k])
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@njit(nogil=True, cache=True, error_model="numpy")
def _list_lines(on: np.ndarray, side: Side, lines: np.ndarray, counts: np.ndarray) -> None:
    """List, layer by layer, the units that are on; where more than half are, those that are off, count negative."""
    for layer in range(side.sizes.size):
        start, size = side.starts[layer], side.sizes[layer]
        n_on = 0
        for at in range(0, size, WORD):
            n_on += count_ones(word_of(on, start + at))
        flip = 2 * n_on > size
        n = start
        for at in range(0, size, WORD):
            word = word_of(on, start + at)
            if flip:
                word = ~word
                if size - at < WORD:  # padding units are off, and stay out of the list
                    word &= np.uint32((1 << (size - at)) - 1)
            while word:
                lines[n] = STRIP_BYTES * (at + trailing_zeros(word))
                word = without_lowest(word)
                n += 1
        counts[layer] = start - n - 1 if flip else n - start


@njit(nogil=True, cache=True, error_model="numpy")
def _gather(side: Side, source: Side, lines: np.ndarray, counts: np.ndarray, field: np.ndarray) -> None:
    """Field (chain, unit of `side`): the sum of the weights of the source units that are on."""
    n_chains, n_units = field.shape
    n_source = lines.shape[1]
    flat_lines = lines.reshape(-1)
    flat_field = field.reshape(-1)
    flat_field[:] = 0
    for strip in range(side.strips.shape[0]):
        offset, layer, column = side.strips[strip, 0], side.strips[strip, 1], side.strips[strip, 2]
        totals = side.totals[strip]
        for chain in range(n_chains):
            at = chain * n_units + column
            count = counts[chain, layer]
            sign = 1
            if count < 0:
                count, sign = -count - 1, -1
                for k in range(totals.size):
                    flat_field[at + k] += totals[k]
            first = chain * n_source + source.starts[layer]
            add_rows(side.weights, offset, flat_lines, first, count, sign, flat_field, at)
