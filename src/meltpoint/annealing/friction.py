"""Friction along the path, measured from log weights; `schedule` spaces the steps by it.

Chains that are moved through dbeta in m steps lag behind equilibrium and lose, near equilibrium,

    friction * dbeta^2 / m   nats,   friction = C(0) / 2 + C(1) + C(2) + …

with C(k) the covariance of d log f / d beta with itself k moves later (Sivak and Crooks 2012: in discrete time the
friction contains both the distance between neighbouring distributions and the autocorrelation time). For a given
number of steps the loss is smallest if every step has the same sqrt(friction) * dbeta.

Friction is measured in two ways. The log weights of a window of m steps have variance 2 friction dbeta^2 / m among
chains near equilibrium. And the mean log weights forward and backward do not cancel: minus their sum is exactly what
the two directions lose, at equilibrium or not. At a first-order transition chains stay in the wrong phase until long
after it, in both directions. The variances then have two narrow peaks, one on each side of the transition, and are
small between them, where steps are needed most. The loss is large in all of that range.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.layers.unit import Floats


@dataclass(frozen=True, eq=False)
class Windows:
    """The betas of a run cut into windows with (nearly) equal numbers of steps."""

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
    """Friction (window,) from log weights (chain, window) of chains that went up, came down and were heated.

    The columns of all three are windows from beta 0 to 1; `heating` is None if the model needs none. The friction is
    the mean of both directions' variances, or half of what they lose together, less its noise, where that is larger.
    The variance of heating is added.
    """
    speed = np.diff(windows.edges) ** 2 / np.diff(windows.cuts)  # dbeta^2 / m
    spread = [np.var(weights, axis=0, ddof=1) for weights in (forward, backward)]
    lost = -forward.mean(axis=0) - backward.mean(axis=0)
    noise = np.sqrt(spread[0] / len(forward) + spread[1] / len(backward))
    friction = np.maximum(sum(spread) / 4, (lost - noise) / 2)
    if heating is not None:
        friction = friction + np.var(heating, axis=0, ddof=1) / 4
    return friction / speed
