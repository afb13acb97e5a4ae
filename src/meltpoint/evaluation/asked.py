"""What was asked for: sizes that were chosen beforehand, or a gap and a budget from which they will follow."""

import math

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base
from meltpoint.annealing.precision import Precision, check_precision
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.errors import InputError
from meltpoint.estimators.checks import check_count
from meltpoint.estimators.pilot import ScheduleName
from meltpoint.evaluation.arguments import (
    BaseName,
    base_name,
    check_examples,
    check_schedule,
    check_tolerance,
)
from meltpoint.evaluation.budget import seconds_of
from meltpoint.models.checks import Floats
from meltpoint.randomness import check_seed
from meltpoint.report.report import Settings
from meltpoint.statistics.certificate import check_confidence

CHOSEN = "chosen"
"""Name of a base that is still to be chosen."""

_STEPS, _CHAINS = 3000, 4
_BUDGET = "30m"


def settle(
    *,
    test_examples: int,
    train: ArrayLike | None,
    base: BaseName | Base | None,
    gap: float | None,
    budget: str | float | None,
    steps: Steps | None,
    schedule: ScheduleName,
    chains: int | None,
    examples: int | None,
    ais_chains: int | None,
    seed: int,
    precision: Precision,
    tolerance: float | None,
    confidence: float,
) -> tuple[Settings, Floats]:
    """Checked settings, and the betas, if they were given; sizes that are to be chosen are 0."""
    sizes = {"steps": steps, "chains": chains, "examples": examples, "ais_chains": ais_chains}
    name = base_name(base, train)
    adaptive = gap is not None or budget is not None
    if adaptive:
        _check_left_out(sizes)
        betas, n, chains, ais_chains = np.zeros(1), 0, 0, 0
        name = CHOSEN if base is None and check_schedule(schedule) == "friction" else name
    else:
        betas = as_betas(_STEPS if steps is None else steps)
        n = check_examples(examples, test_examples)
        remedy = "chains per example: 1 is enough with many steps, the paper uses 50"
        chains = check_count(_CHAINS if chains is None else chains, "chains", remedy)
        several = n * chains if ais_chains is None else ais_chains
        ais_chains = check_count(several, "ais_chains", "1,000 are usual")
    given = steps is not None and np.ndim(steps) > 0
    settings = Settings(
        base=name,
        schedule="given" if given else check_schedule(schedule),
        steps=betas.size - 1,
        examples=n,
        chains=chains,
        ais_chains=ais_chains,
        seed=check_seed(seed),
        precision=check_precision(precision),
        tolerance=check_tolerance(
            (1.0 if gap is None else _check_gap(gap)) if tolerance is None else tolerance
        ),
        confidence=float(check_confidence(confidence)),
        gap=None if gap is None else _check_gap(gap),
        budget=seconds_of(_BUDGET if budget is None else budget) if adaptive else None,
    )
    return settings, betas


def candidates(base: BaseName | Base | None, train: ArrayLike | None) -> tuple[str, ...]:
    """Names of the bases to choose from: what was asked for, or where annealing usually starts, and uniform."""
    name = base_name(base, train)
    return (name,) if base is not None else (name, "uniform")


def _check_gap(gap: float) -> float:
    if isinstance(gap, bool) or not 0 < gap < math.inf:
        raise InputError(
            found=f"gap={gap!r}", expected="a number of nats above 0", remedy="0.1 is a good answer"
        )
    return float(gap)


def _check_left_out(sizes: dict[str, object]) -> None:
    given = [name for name, value in sizes.items() if value is not None]
    if given:
        raise InputError(
            found=f"{given[0]} together with a gap or a budget",
            expected="one or the other",
            remedy=f"leave out {' and '.join(given)}: sizes follow from the gap and the budget",
        )
