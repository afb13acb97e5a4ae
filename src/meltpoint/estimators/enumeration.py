"""Sums over every state of one side of units, the other side summed out, without an exponential per state.

The enumerated units are h, with biases b. The other units have the field y = a + h @ W, and

    f(h) = exp(h·b) prod_i (1 + exp(y_i)).

A block is all states of a few of the enumerated units with the rest, the "outer" units, fixed. Inside a
block y = c + m + l: the block's centre and what its "middle" and its "low" units add to it, counted from
their means. These take the same values in every block, so exp(m) and exp(l) are tables, and with

    1 + exp(y_i) = exp(max(c_i, 0)) (A_i + B_i exp(m_i) exp(l_i)),
    A_i = exp(-max(c_i, 0)),  B_i = exp(min(c_i, 0))

an inner step is two multiplications and one addition, for all low states at once. Nothing is carried from
block to block, so rounding does not build up.
"""

import math
from typing import NamedTuple

import numpy as np

from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.ordered import ordered_product
from meltpoint.layers.unit import Floats
from meltpoint.statistics.elementary import exp

_LOW_UNITS = 6  # 64 states to a row: long enough for vectors, short enough for the second-level cache
_MIDDLE_UNITS = 5
_LARGEST_PRODUCT = 600.0  # exp(±600) is a normal float64
_LARGEST_DECAY = 700.0  # exp(-700) is a normal float64 too, and nothing beside exp(-600)


class EnumeratedBlocks(NamedTuple):
    """What all blocks share."""

    centre: Floats  # (unit,) field with the outer units off and the block's units half on
    outer_weights: Floats  # (outer unit, unit)
    outer_bias: Floats  # (outer unit,)
    middle: Floats  # (middle state, unit) exp(m)
    low: Floats  # (unit, low state) exp(l)
    log_bias: Floats  # (middle state, low state) the block's units' own part of log f
    edges: np.ndarray  # products over units edges[s] … edges[s+1] - 1 neither overflow nor underflow

    @property
    def n_blocks(self) -> int:
        """One block for every state of the outer units."""
        return 2**self.outer_bias.size

    @property
    def work(self) -> int:
        """Time for one block, in factors: a logarithm or an exponential costs as much as some dozens."""
        return (self.log_bias.size + 50) * (self.centre.size + 50)


def cut_into_blocks(weights: Floats, enumerated_bias: Floats, bias: Floats) -> EnumeratedBlocks:
    """Cut the states of the enumerated units into blocks; weights are (enumerated unit, unit).

    The units with the weakest weights vary inside a block, as many as keep every factor in range.
    """
    order = np.argsort(np.abs(weights).max(axis=1), kind="stable")
    weights, enumerated_bias = weights[order], enumerated_bias[order]
    reach = np.cumsum(np.abs(weights[: _LOW_UNITS + _MIDDLE_UNITS]), axis=0) / 2  # largest |m_i + l_i|
    inner = int(np.searchsorted(reach.max(axis=1), _LARGEST_PRODUCT - math.log(2), side="right"))
    n_low = min(inner, _LOW_UNITS)
    low, middle = slice(0, n_low), slice(n_low, inner)
    low_states, middle_states = _states(n_low), _states(inner - n_low)
    return EnumeratedBlocks(
        centre=bias + weights[:inner].sum(axis=0) / 2,
        outer_weights=weights[inner:],
        outer_bias=enumerated_bias[inner:],
        middle=exp(ordered_product(middle_states - 0.5, weights[middle])),
        low=exp(ordered_product(weights[low].T, (low_states - 0.5).T)),
        log_bias=np.add.outer(
            ordered_product(middle_states, enumerated_bias[middle]),
            ordered_product(low_states, enumerated_bias[low]),
        ),
        edges=_cut(math.log(2) + (reach[inner - 1] if inner else np.zeros(bias.size))),
    )


@compiled
def sum_blocks(blocks: EnumeratedBlocks, first: int, log_sums: Floats) -> None:
    """log_sums[k] = log of the sum of f over the states of block first + k."""
    n_units, n_low = blocks.low.shape
    field, off, on = np.empty(n_units), np.empty(n_units), np.empty(n_units)
    product = np.empty(n_low)
    for k in range(log_sums.size):
        log_scale = _open_block(blocks, first + k, field, off, on)
        log_f = blocks.log_bias.copy()
        for s in range(blocks.edges.size - 1):
            for m in range(log_f.shape[0]):
                product[:] = 1.0
                for i in range(blocks.edges[s], blocks.edges[s + 1]):
                    constant, slope, low = off[i], on[i] * blocks.middle[m, i], blocks.low[i]
                    for j in range(n_low):
                        product[j] *= constant + slope * low[j]
                for j in range(n_low):
                    log_f[m, j] += math.log(product[j])
        log_sums[k] = log_scale + _log_sum_exp(log_f)


@compiled
def _open_block(blocks: EnumeratedBlocks, outer: int, field: Floats, off: Floats, on: Floats) -> float:
    """Fill A (off) and B (on) for the block with outer state `outer`, and give its log scale."""
    for i in range(field.size):
        field[i] = blocks.centre[i]
    log_scale = 0.0
    for unit in range(blocks.outer_bias.size):
        if outer >> unit & 1:
            weights = blocks.outer_weights[unit]
            for i in range(field.size):
                field[i] += weights[i]
            log_scale += blocks.outer_bias[unit]
    for i in range(field.size):
        decay = math.exp(-min(abs(field[i]), _LARGEST_DECAY))
        off[i] = decay if field[i] > 0 else 1.0
        on[i] = 1.0 if field[i] > 0 else decay
        log_scale += max(field[i], 0.0)
    return log_scale


@compiled
def _log_sum_exp(values: Floats) -> float:
    largest = -math.inf
    for value in values.flat:
        largest = max(largest, value)
    total = 0.0
    for value in values.flat:
        total += math.exp(value - largest)
    return largest + math.log(total)


def _states(n: int) -> Floats:
    """All states (state, unit) of units, as zeros and ones."""
    return (np.arange(2**n)[:, np.newaxis] >> np.arange(n) & 1).astype(np.float64)


def _cut(largest: Floats) -> np.ndarray:
    """Edges of stretches of units whose product stays in range, given each unit's largest |log factor|."""
    edges, spent = [0], 0.0
    for i, size in enumerate(largest.tolist()):
        if spent + size > _LARGEST_PRODUCT:
            edges.append(i)
            spent = 0.0
        spent += size
    return np.array([*edges, largest.size])
