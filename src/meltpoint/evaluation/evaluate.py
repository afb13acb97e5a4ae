"""evaluate(): from a model and a test set to a report. Orchestration, no mathematics."""

import os
from concurrent.futures import Executor

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.anneal import check_threads
from meltpoint.annealing.base import Base, family_of
from meltpoint.annealing.precision import Precision, check_precision
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.errors import Progress
from meltpoint.estimators.checks import check_count
from meltpoint.estimators.pilot import ScheduleName, friction_schedule
from meltpoint.evaluation.arguments import (
    BaseName,
    base_name,
    check_examples,
    check_model,
    check_schedule,
    check_tolerance,
    choose_examples,
    make_base,
)
from meltpoint.evaluation.clock import Clock
from meltpoint.evaluation.interrupted import Interrupted
from meltpoint.evaluation.keeping import check_part, keep_report, kept, specify
from meltpoint.evaluation.plan import Stage
from meltpoint.evaluation.stage import Work, run_stage
from meltpoint.evaluation.targets import base_of, exact_mean, log_f_of, schedule_of
from meltpoint.models import Model
from meltpoint.models.checks import binary
from meltpoint.randomness import check_seed
from meltpoint.report.compose import compose, optimistic_of
from meltpoint.report.report import Report, Settings
from meltpoint.runs.specification import Specification
from meltpoint.statistics.certificate import check_confidence


def evaluate(
    model: Model,
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    base: BaseName | Base | None = None,
    steps: Steps = 3000,
    schedule: ScheduleName = "friction",
    chains: int = 4,
    examples: int | None = None,
    ais_chains: int | None = None,
    seed: int = 0,
    precision: Precision = "mixed",
    tolerance: float = 1.0,
    confidence: float = 0.99,
    exact: bool | None = None,
    run: str | os.PathLike[str] | None = None,
    part: int = 0,
    executor: Executor | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Bracket the mean test log-probability of a model between RAISE and AIS.

    `train` gives the data base rates to anneal from (base "data", the default when it is given; "model" takes
    the rates from the model's own chains), and the examples from which a short pilot measures where the `steps`
    are needed most (`schedule` "linear" spaces them equally and needs no pilot; `steps` may also be the betas
    themselves). RAISE is run for `examples` random test examples (100, or all if
    there are fewer) with `chains` chains each, and a control variate extends it to the whole test set; AIS is
    run with `ais_chains` chains (as many as RAISE has in all). A gap up to `tolerance` nats counts as
    agreement. `exact` adds the exact value by enumeration (by itself where the smaller side has at most 20
    units).

    `progress(task, done, total)` is called several times a second from the caller's own thread. Ctrl-C (or a
    KeyboardInterrupt raised by `progress`, say at a deadline) gives a report from the examples finished by
    then; before the first is finished it raises `Interrupted` with what AIS has found, or KeyboardInterrupt.

    With a folder `run` everything that is finished is kept there, and the same call continues it, to the same bits
    as if it had never been stopped. `part=1` computes as many other chains, for `meltpoint runs merge`. `executor`
    takes any concurrent.futures.Executor in place of threads, such as Dask's `client.get_executor()`.

    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> report = evaluate(rbm, [[0, 1, 0], [1, 1, 1]], base="uniform", steps=10, chains=2, ais_chains=2)
    >>> print(f"{report.conservative.value:.4f}")  # log 1/8
    -2.0794
    """
    bits = binary(test, "test", check_model(model).n_visible)
    known = None if train is None else binary(train, "train", model.n_visible)
    chains = check_count(
        chains, "chains", "chains per example: 1 is enough with many steps, the paper uses 50"
    )
    n = check_examples(examples, len(bits))
    ais_chains = check_count(
        n * chains if ais_chains is None else ais_chains, "ais_chains", "1,000 are usual"
    )
    linear = as_betas(steps)
    given = np.ndim(steps) > 0
    settings = Settings(
        base=base_name(base, train),
        schedule="given" if given else check_schedule(schedule),
        steps=linear.size - 1,
        examples=n,
        chains=chains,
        ais_chains=ais_chains,
        seed=check_seed(seed),
        precision=check_precision(precision),
        tolerance=check_tolerance(tolerance),
        confidence=float(check_confidence(confidence)),
    )
    threads = check_threads(threads)
    part = check_part(part)
    clock = Clock()
    own_base = base if isinstance(base, Base) else None
    if own_base is not None:
        family_of(model, own_base)  # a base that does not fit is found now, not after log f

    def specification() -> Specification:
        return specify(model, bits, known, own_base, linear if given else None, settings, part)

    with kept(run, specification) as store:

        def make() -> Base:
            return own_base or make_base(settings.base, model, known, settings.seed, threads, progress)

        origin = base_of(settings.base, make, store)
        clock.lap("base")
        log_f = log_f_of(model, bits, settings.seed, store, progress)
        clock.lap("log f")
        truth = exact_mean(model, exact, log_f, threads, store, progress)
        clock.lap("exact")
        friction = None
        if settings.schedule == "friction":
            friction = schedule_of(
                lambda: friction_schedule(
                    model, known, base=origin, seed=settings.seed, threads=threads, progress=progress
                ),
                store,
            )
            clock.lap("pilot")
        chosen = choose_examples(len(bits), n, settings.seed)
        stage = Stage(
            model,
            bits[chosen],
            chosen,
            origin,
            friction.betas(settings.steps) if friction else linear,
            chains,
            ais_chains,
            settings.seed,
            precision,
            part=part,
        )
        found = run_stage(stage, Work(threads, progress, executor, store))
        clock.add(found.seconds)
        if found.log_z is None:
            raise KeyboardInterrupt
        if found.prob is None:
            raise Interrupted(optimistic_of(found.log_z, log_f), found.log_z, ais_chains)
        positions = chosen[found.finished]
        report = compose(
            model,
            settings,
            log_f,
            truth,
            found.log_z,
            found.prob,
            positions,
            clock.seconds(),
            friction and friction.pilot,
        )
        if not report.interrupted:
            keep_report(report, store)
        return report
