"""Graphs of two-state sites laid out for the kernels: by positions of a sweep, in whole steps of a scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from meltpoint.annealing.field import BlockPath
from meltpoint.backends.numba.kernels.bit_graph import BitGraph
from meltpoint.layers.unit import Floats
from meltpoint.models.binary_field import BinaryField

_BITS = {np.dtype(np.int32): 23, np.dtype(np.int64): 51}
"""Of a site's d: sums of SITES of them fit in the type, and a real of the same size holds them exactly."""
_ENERGY_BITS = 61
"""Of log f in steps."""


@dataclass(frozen=True, eq=False)
class Positions:
    """A graph's sites and entries in the order of a forward sweep, what is summed out first."""

    sites: NDArray[np.int32]  # (position,)
    starts: NDArray[np.int64]  # (position + 1,) of a position's entries
    entries: NDArray[np.int64]  # where they are in the graph's rows
    blocks: NDArray[np.int64]  # (block + 1,) where the state's blocks begin


def in_positions(graph: BinaryField) -> Positions:
    """The order in which kernels visit a graph's sites."""
    summed_out, indptr = np.arange(graph.n_state, graph.n_units), graph.couplings.indptr
    sites = np.concatenate([summed_out, *graph.layout.blocks]).astype(np.int32)
    blocks = np.cumsum([len(summed_out), *map(len, graph.layout.blocks)]).astype(np.int64)
    degrees = np.diff(indptr)[sites]
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    entries = np.arange(starts[-1]) + np.repeat(indptr[sites] - starts[:-1], degrees)
    return Positions(sites, starts, entries.astype(np.int64), blocks)


def bits_of_base(path: BlockPath) -> Floats:
    """Inputs (site,) of the bits of the base's independent sites."""
    base = np.empty(path.target.n_units)
    for block, inputs in zip(path.target.unit_blocks, path.base, strict=True):
        zeros = np.zeros(block.size, block.unit.dtype)
        base[block.columns] = block.unit.log_weight(zeros + 1, inputs) - block.unit.log_weight(zeros, inputs)
    return base


def pack_bit_graph(graph: BinaryField, base: Floats, weight_type: DTypeLike) -> BitGraph:
    """Lay a graph of sites with two states out, with whole numbers of the given type or with float64 as it is."""
    positions, dtype = in_positions(graph), np.dtype(weight_type)
    fields = (graph.fields - base)[positions.sites]
    couplings = graph.couplings.data[positions.entries]
    # What a site's d, and the sum over all sites, can be at most.
    reach = np.abs(fields) + np.add.reduceat(np.abs(np.append(couplings, 0.0)), positions.starts[:-1]) * (
        np.diff(positions.starts) > 0
    )
    scale = 1.0 if dtype == np.float64 else _scale(reach, dtype)
    neighbours = graph.couplings.indices[positions.entries].astype(np.int32)
    later = np.concatenate([[0], np.cumsum(neighbours >= graph.n_state)])
    return BitGraph(
        positions.sites,
        base[positions.sites].astype(np.float32 if dtype == np.int32 else np.float64),
        in_steps(fields, scale, dtype),
        positions.starts,
        positions.starts[1:] - np.diff(later[positions.starts]),
        neighbours,
        in_steps(couplings, scale, dtype),
        positions.blocks,
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
