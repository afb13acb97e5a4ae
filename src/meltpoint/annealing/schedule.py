"""Schedules: the betas from 0 to 1 at which chains make a sweep, spaced linearly or by friction (see `friction`)."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.errors import InputError
from meltpoint.layers.unit import Floats

Steps: TypeAlias = int | ArrayLike
"""A number of equal steps, or the betas themselves: increasing, from 0 to 1."""

COARSEST = 5.0
"""No interval is larger than this many intervals of the linear schedule: what a pilot missed then costs little."""


def as_betas(steps: Steps) -> Floats:
    """Betas (K + 1,) from a number of steps K or from an increasing array that starts at 0 and ends at 1.

    >>> as_betas(4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if np.ndim(steps) == 0:
        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
            raise InputError(
                found=f"steps={steps!r}",
                expected="a whole number from 1 on, or an array of betas",
                remedy="1,000 steps are a quick look, 10,000 a good answer for most models",
            )
        return np.linspace(0.0, 1.0, int(steps) + 1)
    betas = np.array(steps, dtype=np.float64)
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
