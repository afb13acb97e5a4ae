"""Sweeps over sites of any number of states that are coupled by tables of any order, for a tile of chains.

The inputs of a site's states at beta are base + beta · scale · d, where d is a vector of whole numbers: the field plus,
for every factor, the row of its table that the other sites' states choose. A row is one vector. All chains of the tile
redraw the same site before the next one, so that its tables are read once for them; whole numbers do not drift.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meltpoint.backends.numba.kernels.chains import CHAINS
from meltpoint.backends.numba.kernels.table_draws import (
    ABSENT,
    add_rows,
    draw_and_weigh,
    draw_state,
    fill_uniforms_of_site,
)
from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.streams import LANES

ROWS = 16
"""Factors whose tables are added for chain after chain: together they stay in the first-level cache."""
_LARGEST_STEP = 2.0  # |change of an input| up to which float32 keeps the digits of a weight
_FACTORS = 64  # each between exp(-4) and exp(4), whose product is a normal float64


class TableGraph(NamedTuple):
    """A graph as the kernel sees it. Positions are sites in the order of a forward sweep, what is summed out first.

    An entry is a factor as one of its sites sees it: a table whose rows, one for each choice of the other sites'
    states, hold what the factor adds to the site's own states.
    """

    width: tuple[
        int, ...
    ]  # as many elements as the logarithm of a vector's length, whose type is compiled in
    sites: NDArray[np.int32]  # (position,)
    base: NDArray[Any]  # (position, state) inputs at beta 0; ABSENT from a site's number of states on
    fields: NDArray[Any]  # (position, state) field - base, in steps
    starts: NDArray[np.int64]  # (position + 1,) where its entries begin
    middles: NDArray[np.int64]  # (position,) where its entries with sites that are summed out begin
    first_other: NDArray[np.int64]  # (entry + 1,) where an entry's other sites begin
    others: NDArray[np.int32]  # (other,) sites
    strides: NDArray[np.int32]  # (other,) elements from one of its states to the next
    at: NDArray[np.int64]  # (entry,) where its table begins
    tables: NDArray[Any]  # flat, in steps; room for a vector at the end
    blocks: NDArray[
        np.int64
    ]  # (block + 1,) where the state's blocks begin; the first one after what is summed out
    scale: float
    reach: float  # the largest |d| · scale


@compiled
def run_tables(
    betas: np.ndarray,
    graph: TableGraph,
    reversed_sweeps: bool,
    clamped: np.ndarray,
    state: np.ndarray,
    generators: np.ndarray,
    first_lane: int,
    energy: np.ndarray,
    log_weights: np.ndarray,
) -> None:
    """Take every chain through betas[0] … betas[-1], in place.

    `state` (site, chain) holds the states, `energy` (chain,) the state's part of log f_1 - log f_0 in steps,
    `log_weights` (chain,) gain; `clamped` (site,) marks sites that keep their value. `first_lane` is the generator of
    the first position.
    """
    n_chains, n_summed, n_blocks = energy.size, graph.blocks[0], graph.blocks.size - 1
    lanes = graph.base.shape[1]
    sums = np.empty(n_chains * lanes, graph.fields.dtype)
    own = np.empty(n_chains * lanes, graph.fields.dtype) if n_summed else sums
    rows = np.empty((ROWS, n_chains), np.int64)
    uniforms = np.ones(generators.shape[0] * CHAINS, graph.base.dtype)
    excess = np.empty(n_chains, graph.base.dtype)
    products = np.ones(n_chains)
    real = graph.base.dtype.type
    turn = first_lane
    for i in range(betas.size):
        last = i + 1 == betas.size
        factor = real(betas[i] * graph.scale)
        change = betas[i] - betas[i - 1] if i > 0 else 0.0
        for position in range(n_summed):
            # The weight of the last step, at the state that this step starts from; the draw needs the same d.
            if not last:
                for group in range(generators.shape[0]):
                    fill_uniforms_of_site(generators, group, turn % LANES, uniforms)
                turn += 1
            _add_up(graph, position, True, True, state, rows, sums, n_chains)
            coarse = abs(change) * graph.reach > _LARGEST_STEP
            minus_change = real(0.0 if coarse else -change * graph.scale)
            for chain in range(n_chains):
                at = chain * lanes
                new = draw_and_weigh(
                    graph.width, sums, chain, graph.base, position, factor, uniforms[chain], minus_change, excess
                )  # fmt: skip
                if coarse:
                    log_weights[chain] += _log_partition(graph, position, betas[i], sums, at)
                    log_weights[chain] -= _log_partition(graph, position, betas[i - 1], sums, at)
                elif change != 0:
                    log_weights[chain] += change * graph.scale * sums[at + new]
                    products[chain] *= 1.0 + excess[chain]
                if not last:
                    state[graph.sites[position], chain] = new
            if change != 0 and (position % _FACTORS == _FACTORS - 1 or position == n_summed - 1):
                for chain in range(n_chains):
                    log_weights[chain] -= math.log(products[chain])
                    products[chain] = 1.0
        if last:
            break
        for k in range(n_blocks):
            block = n_blocks - 1 - k if reversed_sweeps else k
            for position in range(graph.blocks[block], graph.blocks[block + 1]):
                for group in range(generators.shape[0]):
                    fill_uniforms_of_site(generators, group, turn % LANES, uniforms)
                turn += 1
                site = graph.sites[position]
                if clamped[site]:
                    continue
                _add_up(graph, position, True, False, state, rows, own, n_chains)
                if n_summed:
                    sums[:] = own
                    _add_up(graph, position, False, True, state, rows, sums, n_chains)
                for chain in range(n_chains):
                    new = draw_state(
                        graph.width, sums, chain, graph.base, position, factor, uniforms[chain], factor, excess
                    )  # fmt: skip
                    at = chain * lanes
                    energy[chain] += np.int64(own[at + new]) - np.int64(own[at + state[site, chain]])
                    state[site, chain] = new
        step = (betas[i + 1] - betas[i]) * graph.scale
        for chain in range(n_chains):
            log_weights[chain] += step * energy[chain]


@compiled
def _log_partition(graph: TableGraph, position: int, beta: float, sums: np.ndarray, at: int) -> float:
    """Log of the sum over a position's states of exp(input) at beta, in float64."""
    largest = -math.inf
    for a in range(graph.base.shape[1]):
        if graph.base[position, a] > ABSENT / 2:
            largest = max(largest, graph.base[position, a] + beta * graph.scale * sums[at + a])
    total = 0.0
    for a in range(graph.base.shape[1]):
        if graph.base[position, a] > ABSENT / 2:
            total += math.exp(graph.base[position, a] + beta * graph.scale * sums[at + a] - largest)
    return largest + math.log(total)


@compiled
def _add_up(
    graph: TableGraph,
    position: int,
    own: bool,
    summed_out: bool,
    state: np.ndarray,
    rows: np.ndarray,
    sums: np.ndarray,
    n_chains: int,
) -> None:
    """sums (chain · width,) of a position in every chain: fields and rows of entries of its `own` alone, anew.

    Those of entries with sites that are `summed_out` are added.
    """
    width, at, tables, others, strides = graph.width, graph.at, graph.tables, graph.others, graph.strides
    first_other, fields, lanes = graph.first_other, graph.fields, graph.fields.shape[1]
    if own:
        for chain in range(n_chains):
            for a in range(lanes):
                sums[chain * lanes + a] = fields[position, a]
    first = graph.starts[position] if own else graph.middles[position]
    end = graph.starts[position + 1] if summed_out else graph.middles[position]
    for low in range(first, end, ROWS):
        count = min(ROWS, end - low)
        for k in range(count):
            entry = low + k
            row = rows[k]
            for chain in range(n_chains):
                row[chain] = at[entry]
            for other in range(first_other[entry], first_other[entry + 1]):
                chosen, stride = state[others[other]], np.int64(strides[other])
                for chain in range(n_chains):
                    row[chain] += stride * np.int64(chosen[chain])
        for chain in range(n_chains):
            add_rows(width, sums, chain, n_chains, tables, rows, count)


@compiled
def summed_out_log_f(beta: float, graph: TableGraph, state: np.ndarray, n_chains: int) -> np.ndarray:
    """The part (chain,) of log f_beta that comes from the sites that are summed out, in float64."""
    log_f, rows = np.zeros(n_chains), np.empty((ROWS, n_chains), np.int64)
    lanes = graph.base.shape[1]
    sums = np.empty(n_chains * lanes, graph.fields.dtype)
    for position in range(graph.blocks[0]):
        _add_up(graph, position, True, True, state, rows, sums, n_chains)
        for chain in range(n_chains):
            log_f[chain] += _log_partition(graph, position, beta, sums, chain * lanes)
    return log_f


@compiled
def factor_energy(
    fields: np.ndarray,
    n_state: int,
    scopes: np.ndarray,
    strides: np.ndarray,
    offsets: np.ndarray,
    values: np.ndarray,
    scale: float,
    state: np.ndarray,
    n_chains: int,
) -> np.ndarray:
    """log f_1 - log f_0 (chain,) of the sites of the state, in steps of scale; of scale 0, exactly.

    `fields` (site, state) less the base, and the factors among these sites: a value is at offset + sum of
    stride · state over its scope (factor, place).
    """
    energy = np.zeros(n_chains)
    for site in range(n_state):
        for chain in range(n_chains):
            value = fields[site, state[site, chain]]
            energy[chain] += np.rint(value / scale) if scale > 0 else value
    for factor in range(offsets.size):
        for chain in range(n_chains):
            at = offsets[factor]
            for place in range(scopes.shape[1]):
                at += strides[factor, place] * np.int64(state[scopes[factor, place], chain])
            value = values[at]
            energy[chain] += np.rint(value / scale) if scale > 0 else value
    return energy
