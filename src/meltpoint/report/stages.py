"""The stages of an evaluation that was asked for a gap: what each was, and what it found."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from meltpoint.statistics.estimate import finite_or_none


@dataclass(frozen=True)
class Spent:
    """One stage: its size, its bracket, and the upper end of its gap's confidence interval."""

    steps: int
    examples: int
    chains: int
    ais_chains: int
    chain_steps: int
    conservative: float
    optimistic: float
    upper: float
    ess: float

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers."""
        return {name: finite_or_none(value) for name, value in vars(self).items()}


def doubt_of(stage: int, doubt: float) -> float:
    """The part of the doubt 1 - confidence that a stage may use: the parts of all stages add up to all of it.

    A run ends when a stage looks good enough. That a stage was the last therefore says something about its
    noise; but what holds for all stages together holds for whichever was the last. The first stage is for
    measuring, the second or the third is meant to be the last.

    >>> [round(doubt_of(k, 0.01), 6) for k in range(4)]
    [0.0005, 0.0035, 0.003, 0.0015]
    """
    return doubt * (0.05 if stage == 0 else 0.35 if stage == 1 else 0.3 * 0.5 ** (stage - 2))


def sigmas_of(doubt: float) -> float:
    """Standard errors that noise exceeds, on one side, with probability `doubt`.

    >>> round(sigmas_of(0.025), 2)
    1.96
    """
    return -NormalDist().inv_cdf(doubt)
