"""log_z()'s arguments, checked, with the defaults of `LogZSettings` filled in."""

from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base
from meltpoint.annealing.precision import Precision, check_precision
from meltpoint.errors import InputError
from meltpoint.estimators.checks import check_count
from meltpoint.evaluation.settings import BaseName, check_nats, seconds_of
from meltpoint.randomness import check_seed
from meltpoint.report.log_z import LOG_Z_DEFAULTS, LogZSettings
from meltpoint.report.settings import BUDGET_OF_GAP
from meltpoint.statistics.certificate import check_confidence


def resolve_log_z_settings(
    base: BaseName | Base,
    gap: float | None,
    budget: str | float | None,
    steps: int | None,
    chains: int | None,
    seed: int,
    precision: Precision,
    tolerance: float | None,
    confidence: float,
    train: ArrayLike | None,
) -> LogZSettings:
    """Checked settings; sizes that stages are to choose are 0."""
    name = base.name if isinstance(base, Base) else base
    if not isinstance(base, Base) and name not in ("auto", "data", "model", "uniform"):
        raise InputError(
            found=f"base={name!r}",
            expected="'auto', 'data', 'model', 'uniform', or a Base",
            remedy="leave it out: a short trial chooses",
        )
    if name == "data" and train is None and not isinstance(base, Base):
        raise InputError(
            found="base='data' without training data",
            expected="train, to take the base rates from",
            remedy="pass train, or leave base out",
        )
    in_stages = gap is not None or budget is not None
    if in_stages and (steps is not None or chains is not None):
        raise InputError(
            found=f"{'steps' if steps is not None else 'chains'} together with a gap or a budget",
            expected="one or the other",
            remedy="leave them out: sizes follow from the gap and the budget",
        )
    target = None if gap is None else check_nats(gap, "gap", "0.1 is a good answer")
    tolerated = (target or LOG_Z_DEFAULTS.tolerance) if tolerance is None else tolerance
    d = LOG_Z_DEFAULTS
    return LogZSettings(
        base=name,
        steps=0
        if in_stages
        else check_count(d.steps if steps is None else steps, "steps", "3,000 are usual"),
        chains=0
        if in_stages
        else _check_chains(check_count(d.chains if chains is None else chains, "chains", "400 are usual")),
        seed=check_seed(seed),
        precision=check_precision(precision),
        tolerance=check_nats(tolerated, "tolerance", "1 is usual"),
        confidence=float(check_confidence(confidence)),
        gap=target,
        budget=seconds_of(BUDGET_OF_GAP if budget is None else budget) if in_stages else None,
    )


def _check_chains(chains: int) -> int:
    if chains < 2:
        raise InputError(
            found="1 chain", expected="at least 2", remedy="a single chain has no error; 400 are usual"
        )
    return chains
