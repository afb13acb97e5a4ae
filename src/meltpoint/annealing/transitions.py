"""Transitions: moves that leave f_s invariant for every s, and their reversals; one class for each kind of move.

Melting must use the reversal of annealing's moves: reversing only the temperatures is wrong. A move's parameters are
fixed beforehand; they may not depend on the chain's own past.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.draws import Draws
from meltpoint.layers.unit import Bits


class Transition(Protocol):
    """A move that leaves every f_s of a path invariant."""

    def move(
        self,
        path: Any,  # noqa: ANN401 each kind of move asks something else of its path
        s: float,
        state: Bits,
        draws: Draws,
        clamped: NDArray[np.bool_] | None = None,
    ) -> Bits:
        """States (chain, unit) one move later at s; units that are clamped (unit,) keep their value."""
        ...

    def reversed(self) -> "Transition":
        """The move T~ with f_s(x) T(x → y) = f_s(y) T~(y → x); a reversible move is its own reversal."""
        ...


@dataclass(frozen=True)
class BlockGibbs:
    """Redraws the blocks of a field one after the other, the block that is summed out before all others.

    p(h | x) T(x → y | h) has the reversal p(h | y) T~(y → x | h): the blocks of the state in the opposite order, again
    after h. A sweep with one block of the state is its own reversal. At s = 0 it is an exact draw of independent units.
    `skips_clamped` passes blocks by whose units are all clamped, which the compiled kernels draw in vain.
    """

    backwards: bool = False
    skips_clamped: bool = False

    def reversed(self) -> Self:
        return replace(self, backwards=not self.backwards)

    def move(
        self,
        path: Any,  # noqa: ANN401 a path with the inputs of its target's blocks
        s: float,
        state: Bits,
        draws: Draws,
        clamped: NDArray[np.bool_] | None = None,
    ) -> Bits:
        target = path.target
        units = target.with_summed_out(state).copy()
        order = list(range(len(target.state_blocks)))
        if target.summed_out is not None:
            inputs = path.inputs(s, len(order), units)
            units[:, target.summed_out.columns] = draws.units(target.summed_out, inputs)
        for k in reversed(order) if self.backwards else order:
            block = target.state_blocks[k]
            if self.skips_clamped and clamped is not None and clamped[block.columns].all():
                continue
            drawn = draws.units(block, path.inputs(s, k, units))
            if clamped is not None:
                drawn = np.where(clamped[block.columns], units[:, block.columns], drawn)
            units[:, block.columns] = drawn
        return units[:, : target.n_state]
