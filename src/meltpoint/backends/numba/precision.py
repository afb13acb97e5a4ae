"""Which numbers the kernels use along the path: exact at the ends, 16-bit weights in between.

AIS and RAISE allow any intermediate distributions, as long as moves and weights use the same ones and the two
ends are exact. So between the ends the weights are rounded to 16 bits (half the memory traffic, exact integer
sums), and where the path changes from the rounded to the exact one, the weight takes a factor
f_exact(e) / f_rounded(e) at the same beta. That is one more intermediate distribution, nothing else.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from meltpoint.kernels.rows import FEW, GROUP, largest_sum
from meltpoint.layers.unit import Floats
from meltpoint.models.bipartite import BipartitePath

Precision: TypeAlias = Literal["mixed", "float32", "float64"]
"""The least precise numbers a backend may use between the two ends of a path."""

TOLERATED_VARIANCE = 0.02
"""Largest variance of log f_exact - log f_rounded; half of it is what the change between them can cost, in nats."""


@dataclass(frozen=True, eq=False)
class PrecisionSpan:
    """Consecutive betas that are run in one number format."""

    betas: Floats
    exact: bool


def cut_at_model(betas: Floats) -> list[PrecisionSpan]:
    """Cut betas so that exactly the moves at beta 1 are exact.

    A cut must not depend on the direction: the chains that sample the annealing model and the chains that melt it back
    have to make the same move at every beta.
    """
    at_model = betas[:-1] == 1
    cuts = np.flatnonzero(np.diff(at_model)) + 1
    edges = [0, *cuts.tolist(), len(at_model)]
    return [PrecisionSpan(betas[low : high + 1], bool(at_model[low])) for low, high in pairwise(edges)]


def round_weights(path: BipartitePath, scale: float) -> BipartitePath:
    """The same path with every weight rounded to a multiple of scale."""
    blocks = tuple(replace(b, weights=np.rint(b.weights / scale) * scale) for b in path.target.blocks)
    return replace(path, target=replace(path.target, blocks=blocks))


def sixteen_bit_scale(path: BipartitePath, even_on: int | None = None) -> float | None:
    """The step between 16-bit weights that lets a group of rows be added in int16; None if too coarse.

    `even_on` is how many even units are on at once where that is known; otherwise half of them are taken to be.
    """
    target = path.target
    weights = [block.weights for block in target.blocks]
    largest = 0.0
    for n_sources, blocks in ((target.n_even, weights), (target.n_odd, [w.T for w in weights])):
        few = n_sources <= FEW  # then all rows are added in int16
        sums = [largest_sum(w, FEW if few else GROUP) for w in blocks]
        largest = max(largest, sum(sums) if few else max(sums))
    # Each rounded weight may be half a step larger.
    scale = largest / (32767 - FEW / 2) if largest > 0 else 1.0
    pairs = sum(w.size for w in weights) / 4  # half the units of each side on
    if even_on is not None:
        pairs = even_on * target.n_odd / 2
    return scale if pairs * scale**2 / 12 <= TOLERATED_VARIANCE else None
