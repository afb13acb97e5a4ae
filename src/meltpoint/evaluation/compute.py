"""Tasks computed: what runs on threads, in worker processes and on other machines."""

import time
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from meltpoint.annealing.base import family_of
from meltpoint.annealing.family import Family
from meltpoint.annealing.precision import Walk, prepare
from meltpoint.errors import Progress
from meltpoint.estimators.ais import ais_weights
from meltpoint.estimators.reverse import raise_weights
from meltpoint.evaluation.plan import Stage, Task
from meltpoint.models.checks import Floats


@dataclass(frozen=True, eq=False)
class Workshop:
    """A stage with what all of its tasks need, made once."""

    stage: Stage

    @cached_property
    def family(self) -> Family:
        """The path from base to model."""
        return family_of(self.stage.model, self.stage.base)

    @cached_property
    def walk(self) -> Walk:
        """The path laid out for the kernels."""
        return prepare(self.family, self.stage.precision)


class Result(NamedTuple):
    """Log weights of a task, (chain,) of AIS or (example, chain) of RAISE, and the seconds they took."""

    log_weights: Floats
    seconds: float


def compute(shop: Workshop, task: Task, *, threads: int = 1, progress: Progress | None = None) -> Result:
    """Run the chains of a task; KeyboardInterrupt if they were stopped."""
    begun = time.perf_counter()
    stage = shop.stage
    if task.estimator == "ais":
        first = stage.part * stage.ais_chains + task.first
        log_weights, finished = ais_weights(
            shop.family,
            stage.betas,
            np.arange(first, first + task.count),
            stage.seed,
            walk=shop.walk,
            threads=threads,
            progress=progress,
        )
    else:
        first = stage.part * stage.chains
        log_weights, _log_reverse_weights, finished = raise_weights(
            stage.model,
            shop.family,
            stage.betas,
            stage.examples[task.part],
            np.arange(task.first, task.first + task.count),
            np.arange(first, first + stage.chains),
            stage.seed,
            walk=shop.walk,
            threads=threads,
            progress=progress,
        )
    if not finished.all():
        raise KeyboardInterrupt
    return Result(log_weights, time.perf_counter() - begun)
