"""Friction along the path, and the betas with the smallest loss for a given number of steps.

Chains that are moved through dbeta in m steps lag behind equilibrium and lose, near equilibrium,

    friction * dbeta^2 / m   nats,   friction = C(0) / 2 + C(1) + C(2) + …

with C(k) the covariance of d log f / d beta with itself k moves later (Sivak and Crooks 2012: in discrete time the
friction holds both the distance between neighbouring distributions and the time it takes to forget). The best
way through all of beta for a given number of steps spends an equal sqrt(friction) on every step.

Two things tell of it. The log weights of a window of m steps have variance 2 friction dbeta^2 / m among chains
near equilibrium. And the mean log weights forward and backward do not cancel: what they miss is exactly what the
two directions lose, equilibrium or not. Where the path has a jump (a first-order transition), chains go on in
the wrong phase until long after it, in both directions; there the variances see two narrow peaks, one on each
side of the jump, and nothing between them, where steps are needed most. The loss sees all of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.models.checks import Floats

COARSEST = 5.0
"""No interval is larger than this many intervals of the linear schedule: what a pilot did not see costs little."""


@dataclass(frozen=True, eq=False)
class Windows:
    """a run through betas cut into windows of (nearly) equally many steps."""

    betas: Floats
    cuts: NDArray[np.integer]

    @classmethod
    def of(cls, betas: Floats, count: int) -> "Windows":
        """Cut betas into `count` windows, or as many as there are steps."""
        steps = betas.size - 1
        return cls(betas, np.linspace(0, steps, min(count, steps) + 1).round().astype(np.int64))

    @property
    def edges(self) -> Floats:
        """Betas (window + 1,) where windows begin and end."""
        return self.betas[self.cuts]

    @property
    def parts(self) -> list[Floats]:
        """The betas of each window, both ends included."""
        return [
            self.betas[low : high + 1].copy() for low, high in zip(self.cuts[:-1], self.cuts[1:], strict=True)
        ]


def measure_friction(
    windows: Windows, forward: Floats, backward: Floats, heating: Floats | None = None
) -> Floats:
    """Friction (window,) from log weights (chain, window) of chains that went up, came down, and were heated.

    The columns of all three are windows from beta 0 to 1. It is the mean of the two directions, or what they lose
    together where that is more, beyond its noise; heating, where a model needs it, goes the same way once more.
    """
    speed = np.diff(windows.edges) ** 2 / np.diff(windows.cuts)  # dbeta^2 / m
    spread = [np.var(weights, axis=0, ddof=1) for weights in (forward, backward)]
    lost = -forward.mean(axis=0) - backward.mean(axis=0)
    noise = np.sqrt(spread[0] / len(forward) + spread[1] / len(backward))
    friction = np.maximum(sum(spread) / 4, (lost - noise) / 2)
    if heating is not None:
        friction = friction + np.var(heating, axis=0, ddof=1) / 4
    return friction / speed


def spend_equally(edges: Floats, friction: Floats, steps: int) -> Floats:
    """Betas (steps + 1,) with an equal sqrt(friction) in every interval, but none much coarser than linear.

    >>> spend_equally(np.array([0.0, 0.5, 1.0]), np.array([1.0, 9.0]), 4).round(3)
    array([0.   , 0.417, 0.643, 0.821, 1.   ])
    """
    width = np.diff(edges)
    root = np.sqrt(friction)
    total = root @ width
    if not 0 < total < np.inf:  # nothing to go by: no friction at all, or weights that overflow
        return np.linspace(0.0, 1.0, steps + 1)
    density = (1 - 1 / COARSEST) * root / total + 1 / COARSEST
    spent = np.concatenate([[0.0], np.cumsum(density * width)])
    betas = np.interp(np.linspace(0.0, 1.0, steps + 1), spent / spent[-1], edges)
    betas[0], betas[-1] = 0.0, 1.0
    return betas
