"""The annealing loop in plain NumPy, for any path and transition: to read, and to test backends against.

    for i = 0 … K-1:
        move the state at s_i                          # its reversal when melting; clamped units keep their value
        log_w += log f_{s_i+1}(state) - log f_{s_i}(state)

Every estimator is this loop between two ends.
"""

import itertools

import numpy as np

from meltpoint.annealing.blocks import Segment
from meltpoint.annealing.draws import Draws
from meltpoint.annealing.path import Path
from meltpoint.layers.unit import Bits, Floats


def anneal_reference(path: Path, segment: Segment, state: Bits, draws: Draws) -> tuple[Bits, Floats]:
    """Final states (chain, unit of the state) and log weights (chain,) of one segment, in float64."""
    transition = path.transition.reversed() if segment.reversed_sweeps else path.transition
    log_weights = np.zeros(len(state))
    for s, following in itertools.pairwise(segment.betas):
        if s == 0:  # whatever the transition is, chains start at exact draws
            state = path.draw_base(state, draws, segment.clamped)
        else:
            state = transition.move(path, s, state, draws, segment.clamped)
        log_weights += path.log_f(following, state) - path.log_f(s, state)
    return state, log_weights
