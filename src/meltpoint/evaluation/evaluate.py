"""evaluate(): from a model and a test set to a report. Orchestration, no mathematics."""

import os
from concurrent.futures import Executor

from numpy.typing import ArrayLike

from meltpoint.annealing.anneal import check_threads
from meltpoint.annealing.base import Base, family_of
from meltpoint.annealing.precision import Precision
from meltpoint.annealing.schedule import Steps
from meltpoint.errors import Progress
from meltpoint.estimators.pilot import FrictionSchedule, ScheduleName, friction_schedule
from meltpoint.evaluation.adaptive import Watch, close_gap
from meltpoint.evaluation.arguments import BaseName, check_model, make_base
from meltpoint.evaluation.asked import CHOSEN, candidates, settle
from meltpoint.evaluation.case import Case, run_once
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.keeping import check_part, keep_report, kept, specify
from meltpoint.evaluation.path import find_path
from meltpoint.evaluation.stage import Work
from meltpoint.evaluation.targets import exact_mean, log_f_of
from meltpoint.models import Model
from meltpoint.models.checks import binary
from meltpoint.report.report import Report
from meltpoint.runs.specification import Specification


def evaluate(
    model: Model,
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    base: BaseName | Base | None = None,
    gap: float | None = None,
    budget: str | float | None = None,
    steps: Steps | None = None,
    schedule: ScheduleName = "friction",
    chains: int | None = None,
    examples: int | None = None,
    ais_chains: int | None = None,
    seed: int = 0,
    precision: Precision = "mixed",
    tolerance: float | None = None,
    confidence: float = 0.99,
    exact: bool | None = None,
    run: str | os.PathLike[str] | None = None,
    part: int = 0,
    executor: Executor | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> Report:
    """Bracket the mean test log-probability of a model between RAISE and AIS.

    `train` gives the data base rates to anneal from (base "data", the default when it is given; "model" takes
    the rates from the model's own chains), and the examples from which a short pilot measures where the `steps`
    are needed most (`schedule` "linear" spaces them equally and needs no pilot; `steps` may also be the betas
    themselves). RAISE is run for `examples` random test examples (100, or all if there are fewer) with `chains`
    chains each (4), and a control variate extends it to the whole test set; AIS is run with `ais_chains` chains (as
    many as RAISE has in all). A gap up to `tolerance` nats counts as
    agreement. `exact` adds the exact value by enumeration (by itself where the smaller side has at most 20
    units).

    With `gap` and `budget` ("30m" by itself) the base, the steps, examples and chains are chosen from measurements,
    in stages that grow until the upper end of the gap's confidence interval is below `gap` nats, or the time is
    spent. The last stage is reported; `watch` is called with each. What they were is in the report's `stages`.

    `progress(task, done, total)` is called several times a second from the caller's own thread. Ctrl-C (or a
    KeyboardInterrupt raised by `progress`, say at a deadline) gives a report from the examples finished by
    then; before the first is finished it raises `Interrupted` with what AIS has found, or KeyboardInterrupt.

    With a folder `run` everything that is finished is kept there, and the same call continues it, to the same bits
    as if it had never been stopped. `part=1` computes as many other chains, for `meltpoint runs merge`. `executor`
    takes any concurrent.futures.Executor in place of threads, such as Dask's `client.get_executor()`.

    >>> import numpy as np
    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> report = evaluate(rbm, [[0, 1, 0], [1, 1, 1]], base="uniform", steps=10, chains=2, ais_chains=2)
    >>> print(f"{report.conservative.value:.4f}")  # log 1/8
    -2.0794
    """
    clock = Clock()
    bits = binary(test, "test", check_model(model).n_visible)
    known = None if train is None else binary(train, "train", model.n_visible)
    settings, betas = settle(
        test_examples=len(bits),
        train=train,
        base=base,
        gap=gap,
        budget=budget,
        steps=steps,
        schedule=schedule,
        chains=chains,
        examples=examples,
        ais_chains=ais_chains,
        seed=seed,
        precision=precision,
        tolerance=tolerance,
        confidence=confidence,
    )
    threads = check_threads(threads)
    part = check_part(part)
    own_base = base if isinstance(base, Base) else None
    if own_base is not None:
        family_of(model, own_base)  # a base that does not fit is found now, not after log f

    def specification() -> Specification:
        given = betas if settings.schedule == "given" else None
        return specify(model, bits, known, own_base, given, settings, part)

    def make(name: str) -> Base:
        return own_base or make_base(name, model, known, settings.seed, threads, progress)

    def pilot(origin: Base) -> FrictionSchedule:
        return friction_schedule(
            model, known, base=origin, seed=settings.seed, threads=threads, progress=progress
        )

    with kept(run, specification) as store:
        log_f = log_f_of(model, bits, settings.seed, store, progress)
        clock.lap("log f")
        truth = exact_mean(model, exact, log_f, threads, store, progress)
        clock.lap("exact")
        names = candidates(base, train) if settings.base == CHOSEN else (settings.base,)
        path = find_path(names, make, pilot if settings.schedule == "friction" else None, store)
        clock.lap("base" if path.friction is None else "base and pilot")
        case = Case(model, bits, path, settings, log_f, truth, part)
        work = Work(threads, progress, executor, store)
        fixed = settings.budget is None
        report = run_once(case, betas, work, clock) if fixed else close_gap(case, work, clock, watch)
        if not report.interrupted:
            keep_report(report, store)
        return report
