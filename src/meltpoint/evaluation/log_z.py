"""log_z(): the normaliser of a model alone, from both sides. Orchestration, no mathematics."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base
from meltpoint.backends.numba.precision import Precision, check_precision
from meltpoint.defaults import BUDGET_OF_GAP, LOG_Z_DEFAULTS, LogZSettings
from meltpoint.errors import InputError, Progress
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.log_z_run import LogZRun, WatchLogZ
from meltpoint.evaluation.settings import BaseChoice, base_name, check_nats, seconds_of
from meltpoint.formats.objects import ModelLike, from_object
from meltpoint.kernels.compiling import check_threads
from meltpoint.models.checks import check_count, check_switch
from meltpoint.progress import reports_progress
from meltpoint.randomness import check_seed
from meltpoint.results.log_z import LogZBracket
from meltpoint.statistics.certificate import check_confidence


@reports_progress
def log_z(
    model: ModelLike,
    *,
    clamped: Mapping[int, int] | None = None,
    train: ArrayLike | None = None,
    base: BaseChoice | Base = "auto",
    gap: float | None = None,
    budget: str | float | None = None,
    steps: int | None = None,
    chains: int | None = None,
    exact: bool | None = None,
    seed: int = LOG_Z_DEFAULTS.seed,
    precision: Precision = LOG_Z_DEFAULTS.precision,  # pyright: ignore[reportArgumentType]
    tolerance: float | None = None,
    confidence: float = LOG_Z_DEFAULTS.confidence,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    watch: WatchLogZ | None = None,
) -> LogZBracket:
    """Bracket the log normaliser of a model (for a DBN, of its top RBM) between AIS and states melted back.

    AIS from every start is a lower bound, and the largest one counts. Above, states of the model are melted back along
    the same path: exact samples where summing out units one by one is cheap, else end states of the chains of all
    starts, drawn by weight, which are samples as far as no start missed a mode. Ctrl-C gives what was finished.

    Parameters
    ----------
    model
        Any model, or an object that `from_object` reads.
    clamped
        Units (by their numbers, visible ones first) and the states they are fixed at: evidence. Z is then the sum over
        all states that agree with it.
    train
        Training examples, for data base rates.
    base
        Where annealing starts: "auto" (a short trial from each base chooses), "data" (with `train`), "model",
        "uniform", or a `Base`. The others are asked as well.
    gap, budget
        Run stages until log Z is known to plus or minus `gap` nats, or the time (default "30m") is spent.
    steps, chains
        Annealing steps (3,000) and forward chains (400).
    exact
        Whether to compute log Z exactly too, and use exact samples. Default: if that takes about a second.
    seed, precision, threads, progress
        As in `ais_log_z`.
    tolerance
        The largest distance of the two sides, in nats, that counts as agreement (1, or `gap`).
    confidence
        Confidence of the interval `between` and of the certificates.
    watch
        Called with each finished stage of a run with a gap or a budget.

    >>> from meltpoint.models.rbm import RBM
    >>> found = log_z(RBM([[1.0, -2.0], [0.5, 1.0]], [0.0, 0.1], [0.2, 0.0]), steps=50, chains=100)
    >>> found.verdict.reason, found.between[0] < 3.4506 < found.between[1], round(found.exact, 4)
    ('agree', True, 3.4506)
    """
    assert not isinstance(progress, bool), "reports_progress has made a callback of it"
    clock = Clock()
    model = from_object(model)
    settings = _resolve_settings(
        base, gap, budget, steps, chains, seed, precision, tolerance, confidence, train
    )
    if clamped and train is not None:
        raise InputError(
            found="train and clamped units",
            expected="one or the other: rates of training data are not those of the clamped model",
            remedy="leave out train",
        )
    known = None if train is None else model.encode(train, "train")
    if clamped:
        model = model.given(clamped)
    work = LogZRun(model, len(clamped or ()), settings, known, check_threads(threads), progress, clock)
    own = base if isinstance(base, Base) else None
    if own is not None:
        model.path(own)
    work.prepare(own, None if exact is None else check_switch(exact, "exact"))
    return work.run_once() if settings.budget is None else work.close_gap(watch)


def _resolve_settings(
    base: BaseChoice | Base,
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
    name = "auto" if base == "auto" else base_name(base, train)
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
        else check_count(d.steps if steps is None else steps, "steps", f"{d.steps:,} are usual"),
        chains=0
        if in_stages
        else _check_chains(
            check_count(d.chains if chains is None else chains, "chains", f"{d.chains:,} are usual")
        ),
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
