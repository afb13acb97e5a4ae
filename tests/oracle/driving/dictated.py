"""Run the library's own sweeps with outcomes chosen beforehand, and learn exactly how probable they are.

The reference loop is given what draws the units of a block. Here it hands out dictated outcomes and notes their
probability, from the values of the units' states and nothing else of the library. So every trajectory can be run by the
very code that is to be proved correct.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from meltpoint.annealing.blocks import UnitBlock
from meltpoint.layers.unit import Floats, States


class Dictation:
    """Draws that hand out outcomes in order and adds up `log_prob` (chain,), the log probability of them all."""

    def __init__(self, outcomes: NDArray[np.generic]) -> None:
        self.outcomes = outcomes
        self.position = 0
        self.log_prob = np.zeros(len(outcomes))

    def units(self, block: UnitBlock, inputs: Floats) -> States:
        part = self.outcomes[:, self.position : self.position + block.size].astype(np.uint8)
        assert part.shape[1] == block.size, "more units were drawn than outcomes were dictated"
        self.position += block.size
        log_weights = np.multiply.outer(np.array(block.unit.values), inputs)  # (state, chain, unit)
        chosen = np.take_along_axis(log_weights, part[np.newaxis].astype(int), axis=0)[0]
        self.log_prob += (chosen - logsumexp(log_weights, axis=0)).sum(axis=1)
        return part


def product(sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Every combination of one number below each size: one array per size, all equally long."""
    return [axis.ravel() for axis in np.indices(sizes)]
