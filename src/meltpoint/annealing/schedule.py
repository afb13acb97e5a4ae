"""Schedules: the betas from 0 to 1 at which chains make a sweep, spaced linearly or by friction.

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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.arguments import Count, read
from meltpoint.errors import InputError
from meltpoint.foreign import real_array
from meltpoint.layers.unit import Floats

Steps: TypeAlias = Count | ArrayLike
"""A number of equal steps, or the betas themselves: increasing, from 0 to 1."""

COARSEST = 5.0
"""No interval is larger than this many intervals of the linear schedule: what a pilot missed then costs little."""


def are_betas(steps: Any) -> bool:  # noqa: ANN401
    """Whether these are betas, and not a number of steps."""
    return (
        hasattr(steps, "__len__")
        and not isinstance(steps, str | bytes)
        and getattr(steps, "shape", None) != ()
    )


def as_betas(steps: Steps) -> Floats:
    """Betas (K + 1,) from a number of steps K or from an increasing array that starts at 0 and ends at 1.

    >>> as_betas(4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if not are_betas(steps):
        return np.linspace(0.0, 1.0, read(Count, steps, "steps") + 1)
    betas = real_array(steps, "steps")
    if betas.ndim != 1 or betas.size < 2 or not np.isfinite(betas).all():
        raise InputError(
            found=f"betas of shape {betas.shape}"
            + ("" if np.isfinite(betas).all() else " with NaN or infinity"),
            expected="a vector of at least two finite numbers",
            remedy="for example np.linspace(0, 1, 1001)",
        )
    if betas[0] != 0 or betas[-1] != 1:
        raise InputError(
            found=f"betas from {betas[0]:g} to {betas[-1]:g}",
            expected="betas from 0 to 1",
            remedy="begin at 0 and end at 1: the base distribution and the model are the two ends",
        )
    if (np.diff(betas) <= 0).any():
        at = int(np.argmax(np.diff(betas) <= 0))
        raise InputError(
            found=f"betas that do not increase at position {at + 1} ({betas[at]:g}, then {betas[at + 1]:g})",
            expected="increasing betas",
            remedy="sort them and drop repetitions: np.unique(betas)",
        )
    return betas


def spend_equally(edges: Floats, friction: Floats, steps: int) -> Floats:
    """Betas (steps + 1,) with the same sqrt(friction) * dbeta in every interval, but none much coarser than linear.

    >>> spend_equally(np.array([0.0, 0.5, 1.0]), np.array([1.0, 9.0]), 4).round(3)
    array([0.   , 0.417, 0.643, 0.821, 1.   ])
    """
    width = np.diff(edges)
    root = np.sqrt(friction)
    total = np.sum(root * width)
    if not 0 < total < np.inf:  # not usable: no friction at all, or weights that overflow
        return np.linspace(0.0, 1.0, steps + 1)
    density = (1 - 1 / COARSEST) * root / total + 1 / COARSEST
    spent = np.concatenate([[0.0], np.cumsum(density * width)])
    betas = np.interp(np.linspace(0.0, 1.0, steps + 1), spent / spent[-1], edges)
    betas[0], betas[-1] = 0.0, 1.0
    return betas


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
