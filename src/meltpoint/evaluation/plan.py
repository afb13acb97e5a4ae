"""What is to be computed: a stage, cut into fixed ranges of chains, the same whoever computes them."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.precision import Precision
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.dbm import DBM

_CHAINS = 64  # of a range: the kernels gain nothing from more, and lose with half as many


@dataclass(frozen=True, eq=False)
class Stage:
    """Everything that determines the log weights of one stage: AIS and RAISE once each, with one schedule.

    `examples` (example, visible unit) are those RAISE is run for, at these `positions` (example,) of the test set,
    with `chains` chains each; AIS has `ais_chains`. Stages of one evaluation are numbered by `index`, and each has a
    seed of its own. Another `part` has the same number of other chains.
    """

    model: Model
    examples: Bits
    positions: NDArray[np.integer]
    base: Base
    betas: Floats
    chains: int
    ais_chains: int
    seed: int
    precision: Precision
    index: int = 0
    part: int = 0

    @property
    def steps(self) -> int:
        """Number of annealing steps."""
        return self.betas.size - 1

    @property
    def folder(self) -> str:
        """Where its pieces lie in a run's folder."""
        return stage_folder(self.part, self.index)


@dataclass(frozen=True)
class Task:
    """AIS chains or RAISE examples of a stage: `count` of them, from `first` on."""

    estimator: Literal["ais", "raise"]
    first: int
    count: int

    @property
    def part(self) -> slice:
        """Where its results lie among those of all tasks of its estimator."""
        return slice(self.first, self.first + self.count)

    @property
    def name(self) -> str:
        """Name of the piece with its results, in the stage's folder."""
        return f"{self.estimator}-{self.first:07d}"


def stage_folder(part: int, index: int = 0) -> str:
    """Where the pieces of a stage lie in a run's folder."""
    return f"part-{part}/stage-{index}"


def cut(examples: int, chains: int, ais_chains: int) -> list[Task]:
    """All tasks of a stage, AIS first: one side of the bracket is known as early as possible.

    >>> [(task.name, task.count) for task in cut(examples=20, chains=4, ais_chains=100)]
    [('ais-0000000', 50), ('ais-0000050', 50), ('raise-0000000', 10), ('raise-0000010', 10)]
    """
    return [
        *(Task("ais", low, high - low) for low, high in _ranges(ais_chains, _CHAINS)),
        *(Task("raise", low, high - low) for low, high in _ranges(examples, max(1, _CHAINS // chains))),
    ]


def work_of(stage: Stage, task: Task) -> int:
    """Chain-steps of a task."""
    if task.estimator == "ais":
        return task.count * stage.steps
    return task.count * stage.chains * stage.steps * legs_of(stage.model)


def legs_of(model: Model) -> int:
    """How often RAISE goes through all betas: a DBM is heated before it is melted."""
    return 2 if isinstance(model, DBM) and len(model.weights) > 1 else 1


def _ranges(n: int, largest: int) -> list[tuple[int, int]]:
    """Cut n things into an even number of ranges of almost the same size: two cores end together."""
    count = min(n, 2 * -(-n // (2 * largest)))
    return list(pairwise(np.linspace(0, n, count + 1).astype(int).tolist()))
