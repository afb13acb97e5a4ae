"""RAISE by its old module name, until evaluation has switched to `estimators.raise_`."""

from typing import Any

import numpy as np

from meltpoint.annealing.loop import prepare_path
from meltpoint.estimators.raise_ import (
    LogProb,
    RaiseWeights,
    check_forward,
    particle_log_prob,
    raise_log_prob,
    run_raise,
)

__all__ = [
    "LogProb",
    "RaiseWeights",
    "check_forward",
    "particle_log_prob",
    "raise_log_prob",
    "raise_weights",
]


def raise_weights(  # noqa: ANN201
    model: Any,  # noqa: ANN401
    family: Any,  # noqa: ANN401
    *args: Any,  # noqa: ANN401
    precision: Any = "mixed",  # noqa: ANN401
    walk: Any = None,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
):
    """`run_raise`, with the last example unfinished where Ctrl-C came at the very end."""
    found = run_raise(model, walk or prepare_path(family, precision), *args, **options)
    finished = found.finished & ~(
        found.interrupted & (np.arange(len(found.finished)) == len(found.finished) - 1)
    )
    return found.log_weights, found.log_reverse_weights, finished
