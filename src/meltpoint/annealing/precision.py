"""Which numbers the kernels use along the path: exact at the ends, 16-bit weights in between.

AIS and RAISE allow any intermediate distributions, as long as moves and weights use the same ones and the two
ends are exact. So between the ends the weights are rounded to 16 bits (half the memory traffic, exact integer
sums), and where the path changes from the rounded to the exact family, the weight takes a factor
f_exact(e) / f_rounded(e) at the same beta. That is one more intermediate distribution, nothing else.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from meltpoint.annealing.family import Family
from meltpoint.annealing.kernels.packing import Packed, pack
from meltpoint.annealing.kernels.rows import GROUPS, largest_int16
from meltpoint.errors import InputError
from meltpoint.models.checks import Bits, Floats

Precision: TypeAlias = Literal["mixed", "float32", "float64"]

_TOLERATED_VARIANCE = 0.01
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
        """Cut betas so that every move at beta 1 and every weight into or out of beta 1 is exact."""
        if self.rounded is None:
            return [Stretch(betas, True)]
        touches_model = (betas[:-1] == 1) | (betas[1:] == 1)
        cuts = np.flatnonzero(np.diff(touches_model)) + 1
        edges = [0, *cuts.tolist(), len(touches_model)]
        return [
            Stretch(betas[low : high + 1], bool(touches_model[low]))
            for low, high in zip(edges[:-1], edges[1:], strict=True)
        ]

    def packed(self, exact: bool) -> Packed:
        """The layout for a stretch."""
        return self.exact_packed if exact or self.rounded_packed is None else self.rounded_packed

    def change(self, beta: float, even: Bits, to_exact: bool) -> Floats:
        """Log weight (chain,) of changing between the families at beta, in float64."""
        if self.rounded is None:
            return np.zeros(len(even))
        difference = self.exact.log_f(beta, even) - self.rounded.log_f(beta, even)
        return difference if to_exact else -difference


def prepare(family: Family, precision: Precision) -> Walk:
    """Lay a family out for the kernels. `mixed` falls back to float32 where 16 bits are too coarse."""
    if precision not in ("mixed", "float32", "float64"):
        raise InputError(
            found=f"precision={precision!r}",
            expected="'mixed', 'float32' or 'float64'",
            remedy="'mixed' is fast and unbiased, 'float64' is for checking",
        )
    exact_packed = pack(family, np.float64 if precision == "float64" else np.float32)
    group = _group(family) if precision == "mixed" else None
    if group is None:
        return Walk(family, exact_packed, None, None)
    scale = _quantum(family, group)
    rounded = round_weights(family, scale)
    return Walk(family, exact_packed, rounded, pack(rounded, np.int16, scale, group))


def round_weights(family: Family, scale: float) -> Family:
    """The same family with every weight rounded to a multiple of scale."""
    blocks = tuple(replace(b, weights=np.rint(b.weights / scale) * scale) for b in family.target.blocks)
    return replace(family, target=replace(family.target, blocks=blocks))


def _quantum(family: Family, group: int) -> float:
    largest = max(float(np.abs(block.weights).max()) for block in family.target.blocks)
    return largest / largest_int16(group) if largest > 0 else 1.0


def _group(family: Family) -> int | None:
    """The most rows that may be added in int16 without rounding the weights too coarsely, or None."""
    pairs = sum(block.weights.size for block in family.target.blocks) / 4  # half the units of each side on
    for group in GROUPS:
        if pairs * _quantum(family, group) ** 2 / 12 <= _TOLERATED_VARIANCE:
            return group
    return None
