"""A stage: AIS and RAISE once each, with one schedule and one seed.

`Stage` has all that determines the numbers, `Work` how they are computed, which never changes them.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.precision import Precision
from meltpoint.errors import Progress
from meltpoint.estimators.ais import LogZ, ais_log_z
from meltpoint.estimators.reverse import LogProb, raise_log_prob
from meltpoint.evaluation.clock import Clock
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.models.dbm import DBM


@dataclass(frozen=True, eq=False)
class Stage:
    """Everything that determines the log weights of one stage.

    `examples` (example, visible unit) are those RAISE is run for, with `chains` chains each; AIS has `ais_chains`.
    Stages of one evaluation are numbered by `index`, and each has a seed of its own.
    """

    model: Model
    examples: Bits
    base: Base
    betas: Floats
    chains: int
    ais_chains: int
    seed: int
    precision: Precision
    index: int = 0

    @property
    def steps(self) -> int:
        """Number of annealing steps."""
        return self.betas.size - 1

    @property
    def ais_work(self) -> int:
        """Chain-steps of AIS."""
        return self.ais_chains * self.steps

    @property
    def raise_work(self) -> int:
        """Chain-steps of RAISE, which heats a DBM's hidden units before it melts them."""
        legs = 2 if isinstance(self.model, DBM) and len(self.model.weights) > 1 else 1
        return len(self.examples) * self.chains * self.steps * legs


@dataclass(frozen=True)
class Work:
    """How a stage is computed: nothing here changes a number."""

    threads: int
    progress: Progress | None = None


@dataclass(frozen=True)
class Found:
    """What a stage has found: AIS from its finished chains, RAISE for its finished examples, None without any.

    `finished` (example,) are the positions, among the stage's examples, that `prob` is for. A stage is complete
    unless it was interrupted. `seconds` are those of AIS and of RAISE.
    """

    log_z: LogZ | None
    prob: LogProb | None
    finished: NDArray[np.integer]
    complete: bool
    seconds: dict[str, float]


def run_stage(stage: Stage, work: Work) -> Found:
    """Run AIS, then RAISE. Ctrl-C ends the stage early, and what is finished by then is given back."""
    annealing: dict[str, Any] = {
        "base": stage.base,
        "steps": stage.betas,
        "seed": stage.seed,
        "precision": stage.precision,
        "threads": work.threads,
        "progress": work.progress and _whole(work.progress, stage),
    }
    clock = Clock()
    log_z, prob = None, None
    # Complete or not, what is finished is worth having: the caller sees what is missing.
    with suppress(KeyboardInterrupt):
        log_z = ais_log_z(stage.model, chains=stage.ais_chains, **annealing)
        clock.lap("AIS")
        if len(log_z.log_weights) == stage.ais_chains:
            prob = raise_log_prob(stage.model, stage.examples, chains=stage.chains, **annealing)
            clock.lap("RAISE")
    n = 0 if prob is None else len(prob.values)
    return Found(log_z, prob, np.arange(n), complete=n == len(stage.examples), seconds=clock.laps())


def _whole(progress: Progress, stage: Stage) -> Progress:
    """AIS and RAISE as one task, in chain-steps, so that the remaining time is that of both."""
    before = {"AIS": 0, "RAISE": stage.ais_work}

    def pass_on(task: str, done: float, total: float) -> None:
        if task in before:
            progress("AIS and RAISE", before[task] + done, stage.ais_work + stage.raise_work)
        else:
            progress(task, done, total)

    return pass_on
