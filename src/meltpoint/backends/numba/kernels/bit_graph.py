"""Sweeps over sparse graphs of sites with two states, for groups of chains: the loop of `reference`, fused.

The input of a site at beta is base + beta · scale · d, where d is a whole number: field plus the couplings to the
neighbours whose bit is one, in steps of scale. Whole numbers add up exactly, so log f changes by d at every flip and
never drifts. A site is redrawn in all chains of a group together; the couplings are read once for them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.annealing.field import BlockPath
from meltpoint.backends.numba.kernels.bit_draws import redraw, weigh_and_draw, weigh_only
from meltpoint.backends.numba.kernels.chains import CHAINS
from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.numerics import softplus
from meltpoint.layers.unit import Floats
from meltpoint.models.graph_fields import PairField

SITES = 128
"""Sites that are redrawn before sums of d, of 23 bits each, are widened."""
_LARGEST_STEP = 4.0  # |change of an input| up to which float32 keeps the digits of a weight's factor
_TINY = 1e-5  # change of an input whose cube is lost in float64
_LARGEST_PRODUCT = 400.0  # |log| of a product that neither overflows nor underflows


class BitGraph(NamedTuple):
    """A graph as the kernel sees it. Positions are sites in the order of a forward sweep, what is summed out first."""

    sites: NDArray[np.int32]  # (position,)
    base: NDArray[Any]  # (position,) inputs at beta 0
    fields: NDArray[Any]  # (position,) field - base, in steps
    starts: NDArray[np.int64]  # (position + 1,) where its entries begin
    middles: NDArray[np.int64]  # (position,) where its neighbours that are summed out begin
    neighbours: NDArray[np.int32]  # (entry,) sites
    couplings: NDArray[Any]  # (entry,) in steps
    blocks: NDArray[
        np.int64
    ]  # (block + 1,) where the state's blocks begin; the first one after what is summed out
    scale: float
    reach: float  # the largest |d| · scale


@compiled
def run_bits(
    betas: np.ndarray,
    graph: BitGraph,
    reversed_sweeps: bool,
    clamped: np.ndarray,
    words: np.ndarray,
    generators: np.ndarray,
    first_lane: int,
    energy: np.ndarray,
    log_weights: np.ndarray,
) -> None:
    """Take every group through betas[0] … betas[-1], in place.

    `words` (group, site) holds the bits, `energy` (group, chain) the state's part of log f_1 - log f_0 in steps,
    `log_weights` (group, chain) gain; `clamped` (site,) marks sites that keep their value. `first_lane` is the
    generator of the first position.
    """
    blocks, real = graph.blocks, graph.base.dtype.type
    n_sites, n_summed, n_blocks = words.shape[1], blocks[0], blocks.size - 1
    products = np.empty(CHAINS)
    for group in range(words.shape[0]):
        turn = first_lane
        for i in range(betas.size):
            beta = betas[i]
            last = i + 1 == betas.size
            factor = real(beta * graph.scale)
            if n_summed > 0:
                # The weight of the last step, at the state that this step starts from; the draw needs the same d.
                change = beta - betas[i - 1] if i > 0 else 0.0
                coarse = abs(change) * graph.reach > _LARGEST_STEP
                if coarse:
                    _add_softplus(graph, betas[i - 1], beta, words, group, log_weights)
                minus_change = real(0.0 if coarse else -change * graph.scale)
                size = _sites_at_once(change, graph.reach)
                for low in range(0, n_summed, size):
                    high = min(low + size, n_summed)
                    products[:] = 1.0
                    if last:
                        weigh_only(
                            words, n_sites, low, high, graph, factor, minus_change, generators, group, turn, products
                        )  # fmt: skip
                    else:
                        weigh_and_draw(
                            words, n_sites, low, high, graph, factor, minus_change, generators, group, turn, products
                        )  # fmt: skip
                        turn += high - low
                    if minus_change != 0:
                        for chain in range(CHAINS):
                            log_weights[group, chain] -= math.log(products[chain])
            if last:
                break
            for k in range(n_blocks):
                block = n_blocks - 1 - k if reversed_sweeps else k
                end = blocks[block + 1]
                for low in range(blocks[block], end, SITES):
                    high = min(low + SITES, end)
                    redraw(
                        words, n_sites, low, high, graph, factor, clamped, generators, group, turn, energy
                    )  # fmt: skip
                    turn += high - low
            step = (betas[i + 1] - beta) * graph.scale
            for chain in range(CHAINS):
                log_weights[group, chain] += step * energy[group, chain]


@compiled
def _sites_at_once(change: float, reach: float) -> int:
    """How many weights can be multiplied before their logarithm is taken."""
    step = min(abs(change) * reach, _LARGEST_STEP)
    return SITES if step * SITES < _LARGEST_PRODUCT else max(1, int(_LARGEST_PRODUCT / step))


@compiled
def _add_softplus(
    graph: BitGraph, previous: float, beta: float, words: np.ndarray, group: int, log_weights: np.ndarray
) -> None:
    """Add the change of log f between two betas by what is summed out, for steps of any size."""
    d = np.empty(CHAINS)
    for position in range(graph.blocks[0]):
        _pairs_of(graph, position, words, group, d)
        for chain in range(CHAINS):
            rate = graph.scale * d[chain]
            base = float(graph.base[position])
            log_weights[group, chain] += softplus(base + beta * rate) - softplus(base + previous * rate)


@compiled
def state_energy(graph: BitGraph, words: np.ndarray) -> np.ndarray:
    """The state's part (group, chain) of log f_1 - log f_0, in steps: what `run_bits` keeps up to date."""
    energy = np.zeros((words.shape[0], CHAINS), np.int64)
    d = np.empty(CHAINS, np.int64)
    for group in range(words.shape[0]):
        for position in range(graph.blocks[0], graph.sites.size):
            _pairs_of(graph, position, words, group, d)
            own = words[group, graph.sites[position]]
            for chain in range(CHAINS):
                energy[group, chain] += d[chain] * np.int64((own >> np.uint32(chain)) & np.uint32(1))
    return energy


@compiled
def log_f_at(beta: float, graph: BitGraph, words: np.ndarray) -> np.ndarray:
    """log f_beta(state) (group, chain) without the base's share of the state, in float64."""
    log_f = np.zeros((words.shape[0], CHAINS))
    d = np.empty(CHAINS)
    for group in range(words.shape[0]):
        for position in range(graph.sites.size):
            _pairs_of(graph, position, words, group, d)
            if position < graph.blocks[0]:
                base = float(graph.base[position])
                for chain in range(CHAINS):
                    log_f[group, chain] += softplus(base + beta * graph.scale * d[chain])
            else:
                _add_where_on(beta * graph.scale, d, words[group, graph.sites[position]], log_f[group])
    return log_f


@compiled
def rounding_gap(beta: float, exact: BitGraph, rounded: BitGraph, words: np.ndarray) -> np.ndarray:
    """log f_beta(state) (group, chain) of the exact graph less that of the rounded one, in float64."""
    gap = np.zeros((words.shape[0], CHAINS))
    d, other = np.empty(CHAINS), np.empty(CHAINS)
    product = np.empty(CHAINS)
    for group in range(words.shape[0]):
        product[:] = 1.0
        for position in range(exact.sites.size):
            _pairs_of(exact, position, words, group, d)
            _pairs_of(rounded, position, words, group, other)
            for chain in range(CHAINS):
                d[chain] -= rounded.scale * other[chain]
            if position >= exact.blocks[0]:
                _add_where_on(beta, d, words[group, exact.sites[position]], gap[group])
                continue
            base = float(exact.base[position])
            for chain in range(CHAINS):
                t, change = base + beta * rounded.scale * other[chain], beta * d[chain]
                if abs(change) < _TINY:
                    # softplus(t + change) - softplus(t) = log(1 + sigmoid(t) expm1(change)).
                    product[chain] *= 1.0 + change * (1.0 + change / 2) / (1.0 + math.exp(-t))
                else:
                    gap[group, chain] += softplus(t + change) - softplus(t)
            if position % SITES == 0:
                _take_logs(product, gap[group])
        _take_logs(product, gap[group])
    return gap


@compiled
def _take_logs(product: np.ndarray, gap: np.ndarray) -> None:
    """gap += log(product), which begins anew at 1."""
    for chain in range(CHAINS):
        gap[chain] += math.log(product[chain])
        product[chain] = 1.0


@compiled
def _add_where_on(factor: float, d: np.ndarray, word: int, out: np.ndarray) -> None:
    """out += factor · d in the chains whose bit is one."""
    for chain in range(CHAINS):
        out[chain] += factor * d[chain] * ((word >> np.uint32(chain)) & np.uint32(1))


@compiled
def _pairs_of(graph: BitGraph, position: int, words: np.ndarray, group: int, d: np.ndarray) -> None:
    """d (chain,) of a position from the sites of the state, in steps: of a pair among them for the later site alone."""
    d[:] = graph.fields[position]
    summed_out = position < graph.blocks[0]
    for entry in range(graph.starts[position], graph.middles[position]):
        neighbour = graph.neighbours[entry]
        if summed_out or neighbour < graph.sites[position]:
            word = words[group, neighbour]
            for chain in range(CHAINS):
                d[chain] += graph.couplings[entry] * ((word >> np.uint32(chain)) & np.uint32(1))


_BITS = {np.dtype(np.int32): 23, np.dtype(np.int64): 51}
"""Of a site's d: sums of SITES of them fit in the type, and a real of the same size holds them exactly."""
_ENERGY_BITS = 61
"""Of log f in steps."""


def pack_bit_graph(graph: PairField, path: BlockPath, weight_type: DTypeLike) -> BitGraph:
    """Lay the graph of a path's target out, with whole numbers of the given type or with float64 as it is."""
    dtype = np.dtype(weight_type)
    base = np.empty(graph.n_units)  # of the base's independent sites: inputs of their bits
    for block, inputs in zip(path.target.unit_blocks, path.base, strict=True):
        zeros = np.zeros(block.size, block.unit.dtype)
        base[block.columns] = block.unit.log_weight(zeros + 1, inputs) - block.unit.log_weight(zeros, inputs)
    # The order of a forward sweep, what is summed out first.
    summed_out, indptr = np.arange(graph.n_state, graph.n_units), graph.couplings.indptr
    sites = np.concatenate([summed_out, *graph.layout.blocks]).astype(np.int32)
    degrees = np.diff(indptr)[sites]
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    entries = np.arange(starts[-1]) + np.repeat(indptr[sites] - starts[:-1], degrees)
    fields = (graph.fields - base)[sites]
    couplings = graph.couplings.data[entries]
    neighbours = graph.couplings.indices[entries].astype(np.int32)
    later = np.concatenate([[0], np.cumsum(neighbours >= graph.n_state)])
    # What a site's d, and the sum over all sites, can be at most.
    sums = np.add.reduceat(np.abs(np.append(couplings, 0.0)), starts[:-1])
    reach = np.abs(fields) + sums * (degrees > 0)
    scale = 1.0 if dtype == np.float64 else _scale(reach, dtype)
    return BitGraph(
        sites,
        base[sites].astype(np.float32 if dtype == np.int32 else np.float64),
        in_steps(fields, scale, dtype),
        starts,
        starts[1:] - np.diff(later[starts]),
        neighbours,
        in_steps(couplings, scale, dtype),
        np.cumsum([len(summed_out), *map(len, graph.layout.blocks)]).astype(np.int64),
        scale,
        float(reach.max(initial=0.0)),
    )


def _scale(reach: Floats, dtype: np.dtype[Any]) -> float:
    """The step, a power of two: scaled sums are then as exact as the whole numbers."""
    largest = max(reach.max(initial=0.0) / 2.0 ** _BITS[dtype], reach.sum() / 2.0**_ENERGY_BITS)
    return float(2.0 ** np.ceil(np.log2(largest))) if largest > 0 else 1.0


def in_steps(values: Floats, scale: float, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values rounded to whole steps, or as they are in float64."""
    return values if dtype == np.float64 else np.rint(values / scale).astype(dtype)
