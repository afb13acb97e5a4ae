"""The stages of an evaluation with a target: their sizes and results."""

import math
from dataclasses import dataclass

from meltpoint.records import Record

ENOUGH_ESS = 5.0
"""Fewest effective AIS chains for which the error of log Z is known."""


@dataclass(frozen=True)
class StageSummary(Record):
    """One stage: its size, its bracket, the upper end of its gap's confidence interval, and AIS's effective chains.

    `half_width` is that of the interval `between` from the stage's own weights: the model's value is known to within
    that many nats, if no mode was missed. Other starts may widen the interval of the stage that is reported.
    """

    steps: int
    examples: int
    chains: int
    ais_chains: int
    chain_steps: int
    conservative: float
    optimistic: float
    upper: float
    half_width: float
    ess: float

    def __str__(self) -> str:
        return (
            f"{self.steps:,} steps, RAISE {self.conservative:.2f}, AIS {self.optimistic:.2f}, {self.within}, effective "
            f"{self.ess:,.0f} of {self.ais_chains:,} chains"
        )

    @property
    def within(self) -> str:
        return within_text(self.half_width, self.ess)


@dataclass(frozen=True)
class OtherBase(Record):
    """An evaluation of the same size from another base, which is not reported because it found less of log Z.

    `missing` are the nats of log Z that other starts found out of its reach, with their standard error; 0 if none.
    """

    base: str
    log_z: float
    log_z_stderr: float
    conservative: float
    optimistic: float
    missing: float
    missing_stderr: float


def within_text(half_width: float, ess: float) -> str:
    """The accuracy of a value in words; it is unknown where fewer than five chains carry log Z.

    >>> within_text(0.25, ess=70.0), within_text(11705.32, ess=1.0)
    ('within ± 0.25', 'accuracy unknown')
    """
    if not (ess >= ENOUGH_ESS and math.isfinite(half_width)):
        return "accuracy unknown"
    return f"within ± {half_width:.2f}"


def alpha_of(stage: int, alpha: float) -> float:
    """The part of alpha = 1 - confidence that a stage may use: the parts of all stages add up to all of it.

    A run ends when a stage looks good enough, and reports the best. That a stage was chosen therefore says something
    about its noise; but what holds for all stages together holds for whichever is reported. The first stage is for
    measuring, the second or the third is meant to be the last.

    >>> [round(alpha_of(k, 0.01), 6) for k in range(4)]
    [0.0002, 0.0058, 0.002, 0.001]
    """
    return alpha * (0.02 if stage == 0 else 0.58 if stage == 1 else 0.2 * 0.5 ** (stage - 2))
