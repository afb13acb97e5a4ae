"""Which numbers the kernels use along the path: exact at the ends, 16-bit weights in between.

AIS and RAISE allow any intermediate distributions, as long as moves and weights use the same ones and the two
ends are exact. So between the ends the weights are rounded to 16 bits (half the memory traffic, exact integer
sums), and where the path changes from the rounded to the exact family, the weight takes a factor
f_exact(e) / f_rounded(e) at the same beta. That is one more intermediate distribution, nothing else.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from meltpoint.annealing.family import Family
from meltpoint.annealing.kernels.packing import Packed, pack
from meltpoint.annealing.kernels.rows import FEW, GROUP, largest_sum
from meltpoint.errors import InputError
from meltpoint.models.checks import Bits, Floats

Precision: TypeAlias = Literal["mixed", "float32", "float64"]

_TOLERATED_VARIANCE = 0.02
"""Of log f_exact - log f_rounded; half of it is what the change of family can cost, in nats."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive betas walked with one family in one number format."""

    betas: Floats
    exact: bool


@dataclass(frozen=True)
class Walk:
    """The families and kernel layouts for one precision."""

    exact: Family
    exact_packed: Packed
    rounded: Family | None
    rounded_packed: Packed | None

    def stretches(self, betas: Floats) -> list[Stretch]:
        """Cut betas so that exactly the moves at beta 1 are exact.

        A cut must not depend on the direction of the walk: the chains that sample the annealing model and the
        chains that melt it back have to make the same move at every beta.
        """
        if self.rounded is None:
            return [Stretch(betas, True)]
        at_model = betas[:-1] == 1
        cuts = np.flatnonzero(np.diff(at_model)) + 1
        edges = [0, *cuts.tolist(), len(at_model)]
        return [Stretch(betas[low : high + 1], bool(at_model[low])) for low, high in pairwise(edges)]

    def packed(self, exact: bool) -> Packed:
        """The layout for a stretch."""
        return self.exact_packed if exact or self.rounded_packed is None else self.rounded_packed

    def change(self, beta: float, even: Bits, to_exact: bool) -> Floats:
        """Log weight (chain,) of changing between the families at beta, in float64."""
        if self.rounded is None:
            return np.zeros(len(even))
        # The even units' biases are the same in both families.
        exact, rounded = (family.odd_log_f_by_rows(beta, even) for family in (self.exact, self.rounded))
        return exact - rounded if to_exact else rounded - exact


def prepare(family: Family, precision: Precision) -> Walk:
    """Lay a family out for the kernels. `mixed` falls back to float32 where 16 bits are too coarse."""
    check_precision(precision)
    exact_packed = pack(family, np.float64 if precision == "float64" else np.float32)
    scale = _quantum(family) if precision == "mixed" else None
    if scale is None:
        return Walk(family, exact_packed, None, None)
    rounded = round_weights(family, scale)
    return Walk(family, exact_packed, rounded, pack(rounded, np.int16, scale))


def check_precision(precision: Precision) -> Precision:
    """The name of a precision, or an error."""
    if precision not in ("mixed", "float32", "float64"):
        raise InputError(
            found=f"precision={precision!r}",
            expected="'mixed', 'float32' or 'float64'",
            remedy="'mixed' is fast and unbiased, 'float64' is for checking",
        )
    return precision


def round_weights(family: Family, scale: float) -> Family:
    """The same family with every weight rounded to a multiple of scale."""
    blocks = tuple(replace(b, weights=np.rint(b.weights / scale) * scale) for b in family.target.blocks)
    return replace(family, target=replace(family.target, blocks=blocks))


def _quantum(family: Family) -> float | None:
    """The step between 16-bit weights that lets a group of rows be added in int16; None if too coarse."""
    target = family.target
    weights = [block.weights for block in target.blocks]
    largest = 0.0
    for n_sources, blocks in ((target.n_even, weights), (target.n_odd, [w.T for w in weights])):
        few = n_sources <= FEW  # then all rows are added in int16
        sums = [largest_sum(w, FEW if few else GROUP) for w in blocks]
        largest = max(largest, sum(sums) if few else max(sums))
    # Each rounded weight may be half a step larger.
    scale = largest / (32767 - FEW / 2) if largest > 0 else 1.0
    pairs = sum(w.size for w in weights) / 4  # half the units of each side on
    return scale if pairs * scale**2 / 12 <= _TOLERATED_VARIANCE else None
