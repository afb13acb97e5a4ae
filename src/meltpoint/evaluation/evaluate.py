"""evaluate(): from a model and a test set to a report. Orchestration, no mathematics."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass

from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.arguments import Budget, Confidence, Count, Number, Positive, Seed, Threads, public
from meltpoint.backends.numba.precision import Precision
from meltpoint.defaults import DEFAULTS, Settings
from meltpoint.errors import Progress, printable
from meltpoint.estimators.pilot import ScheduleName
from meltpoint.evaluation.prerequisites import (
    Clock,
    Origins,
    conventions_of,
    exact_log_z_of,
    log_f_of,
    samples_of,
)
from meltpoint.evaluation.reporting import FinishedStage, Subject, with_rest
from meltpoint.evaluation.settings import (
    BaseChoice,
    Watch,
    candidate_bases,
    resolve_settings,
)
from meltpoint.evaluation.stage import ANNEALING, ModelFacts, Stage, StageResult
from meltpoint.evaluation.stages import Evaluation
from meltpoint.fingerprint import fingerprint
from meltpoint.formats.objects import ModelLike, from_object
from meltpoint.formats.own_values import OWN_VALUES, check_own_values
from meltpoint.layers.unit import Floats, States
from meltpoint.models import Model
from meltpoint.results.compose import versions
from meltpoint.results.report import Report
from meltpoint.runs.contents import MODEL, NAMES
from meltpoint.runs.run import Run
from meltpoint.runs.specification import Specification
from meltpoint.runs.store import RunFolder, open_run
from meltpoint.runs.workers import Workers

_log = logging.getLogger("meltpoint")

_REPORTING = ("tolerance", "confidence", "gap", "budget", "particles", "evidence", "exact")
"""Settings that change what is made of the weights and how many there are, and not the weights."""


@public
def evaluate(
    model: ModelLike,
    test: ArrayLike,
    train: ArrayLike | None = None,
    *,
    particles: Count | None = None,
    base: BaseChoice | Base | None = None,
    gap: Positive | None = None,
    budget: Budget | None = None,
    steps: Steps | None = None,
    schedule: ScheduleName = DEFAULTS.schedule,  # pyright: ignore[reportArgumentType]
    chains: Count | None = None,
    examples: Count | None = None,
    ais_chains: Count | None = None,
    seed: Seed = DEFAULTS.seed,
    precision: Precision = DEFAULTS.precision,  # pyright: ignore[reportArgumentType]
    tolerance: Positive | None = None,
    confidence: Confidence = DEFAULTS.confidence,
    exact: bool | None = None,
    evidence: bool = DEFAULTS.evidence,
    run: str | os.PathLike[str] | None = None,
    part: Number = 0,
    executor: Executor | None = None,
    threads: Threads | None = None,
    progress: Progress | bool | None = None,
    watch: Watch | None = None,
    names: Mapping[str, str] | None = None,
) -> Report:
    """Bracket the mean test log-probability of a model between RAISE and AIS.

    Ctrl-C (or a KeyboardInterrupt raised by `progress`, for example at a deadline) gives a report from the examples
    that were finished. Before the first one it raises `Interrupted` with what AIS has found, or KeyboardInterrupt.

    Parameters
    ----------
    model
        Any model: an RBM, DBM or DBN, an Ising or Potts model, a factor graph; or an object of another library that
        `from_object` reads.
    test
        Test examples (example, visible unit): an array, a tensor, a sparse matrix or a data frame.
    train
        Training examples, for data base rates and for the pilot; never the test set.
    particles
        N of RAISE. Default: one more than there are AIS chains; 1 is the paper's estimator.
    base
        Where annealing starts: "data" (rates of `train`), "model" (rates from the model's own chains), "uniform",
        or a `Base`. The default "auto" is "data" if there is `train`, else "model". If another base finds more of
        log Z, "auto" repeats the evaluation from there and reports the base that found most.
    gap, budget
        How close the two sides must come, in nats, and how long that may take (default "30m"). Base, steps, examples
        and chains are then chosen from measurements, in stages that grow until the interval `between` is plus or minus
        `gap` or less, or the time is spent. The best stage is reported.
    steps
        Number of annealing steps (3,000), or the betas themselves.
    schedule
        "friction" spaces the steps by what a short pilot measures, "linear" equally.
    chains, examples, ais_chains
        RAISE is run for `examples` random test examples (100, or all if there are fewer) with `chains` chains each
        (4), and a control variate extends it to the whole test set. AIS has `ais_chains` chains: by default as many
        as all RAISE chains together.
    seed, precision
        The seed of all random numbers; the precision of the weights, "mixed", "float32" or "float64".
    tolerance
        The largest gap, in nats, that counts as agreement (1, or `gap`).
    confidence
        Confidence of the interval `between` and of the certificates.
    exact
        Whether to compute log Z exactly too. Default: if that takes about a second.
    evidence
        Whether to ask other bases and mean-field modes for what the chains have missed, which takes 10 to 30 % more
        chain-steps. Without it no report is trusted: both sides may be wrong together.
    run
        A folder in which everything that is finished is kept; the same call continues it, to the same bits as if it
        had never been stopped.
    part
        1, 2, …: another set of as many chains, for `merge_runs`.
    executor, threads
        Any concurrent.futures.Executor, such as Dask's `client.get_executor()`, or threads of this process.
    progress
        `progress(task, done, total)` is called several times a second from the caller's own thread.
    watch
        Called with each finished stage of a run with a gap or a budget.
    names
        What the report calls them: {"model": …, "test": …, "train": …}, such as the names of their files.

    >>> import numpy as np
    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    >>> report = evaluate(rbm, [[0, 1, 0], [1, 1, 1]], base="uniform", steps=10, chains=2, ais_chains=2)
    >>> print(f"{report.conservative.value:.4f}")  # log 1/8
    -2.0794
    """
    given = dict(locals())  # these keywords by name: spelt here and in `Settings`, and nowhere in between
    assert not isinstance(progress, bool), "public() has made a callback of it"
    clock = Clock()
    own_model, model = model, from_object(model)
    states = model.encode(test, "test")
    check_own_values(own_model, model, model.decode(states[:OWN_VALUES]))
    known = None if train is None else model.encode(train, "train")
    settings, betas = resolve_settings(len(states), train, given)
    own_base = base if isinstance(base, Base) else None
    if own_base is not None:
        model.path(own_base)  # a base that does not fit is found now, not after log f

    _log.info("evaluating %r on %d test examples, seed %d", model, len(states), settings.seed)
    fingerprints = _fingerprints(model, states, known, own_base, betas)
    workers = None if executor is None else Workers(executor)
    with _open_folder(run, model, states, fingerprints, settings, part) as folder:
        computing = Run(threads, progress, workers, folder)
        facts = ModelFacts.of(model)
        computing.keep(MODEL, facts)
        log_f = log_f_of(model, states, settings.seed, computing)
        clock.lap("log f")
        # What comes are steps of chains, by which stages are planned.
        computing.spent.steps = computing.spent.seconds = 0.0
        exact_log_z = exact_log_z_of(model, settings.exact, computing)
        clock.lap("exact")
        conventions = conventions_of(model, states if known is None else known, computing)
        clock.lap("conventions")
        origins = Origins(model, known, own_base, settings, computing, clock)
        origin = origins.choose(candidate_bases(settings, train))
        clock.lap("base and pilot" if origin.friction else "base")
        subject = Subject(
            facts=facts,
            settings=settings,
            log_f=log_f,
            exact_log_z=exact_log_z,
            conventions=conventions,
            fingerprints=fingerprints,
            names={str(key): printable(str(name)) for key, name in (names or {}).items()},
        )
        evaluation = LikelihoodEvaluation(
            model=model,
            settings=settings,
            betas=betas,
            origins=origins,
            base=origin.base.name,
            base_is_free=base in (None, "auto"),
            test=states,
            given_seed=settings.seed,
            run=computing,
            clock=clock,
            part=part,
            watch=watch,
            log_f_is_exact=log_f.is_exact,
            subject=subject,
        )
        report = evaluation.run_stages()
        if subject.names:
            computing.keep(NAMES, dict(subject.names))
        samples = None
        clock.lap("report")
        if report.shown is not None and not evaluation.stopped:
            # Ctrl-C costs the pictures, not the report.
            with suppress(KeyboardInterrupt):
                samples = samples_of(model, settings.seed, computing)
        clock.lap("samples")
        friction = origins.at(report.settings.base).friction
        report = with_rest(report, friction, samples, clock.seconds(), evaluation.stopped)
        if folder is not None and not report.interrupted:
            folder.finish(report.to_dict())
        _log.info("%r in %.1f s: %s", report, report.seconds["total"], report.verdict)
        return report


@dataclass(eq=False, kw_only=True)
class LikelihoodEvaluation(Evaluation[Report]):
    """An evaluation with a test set."""

    subject: Subject

    def other_starts(self, stage: Stage) -> tuple[list[tuple[Base, Floats]], dict[str, int]]:
        # The model's own rates come from chains that start at the uniform base, and cost more than all other starts:
        # they are asked only where there is no other base.
        names = [*(["data"] if self.origins.train is not None else []), "uniform"]
        others = [name for name in names if name != stage.base.name] or ["model"]
        return [(self.origins.base(name), as_betas(stage.size.steps)) for name in others], {}

    def task(self, stage: Stage) -> str:
        """Which stage it is, and how close the two numbers are by now."""
        if self.settings.budget is None:
            return ANNEALING
        so_far = ""
        if self.finished:
            last = self.finished[-1].summary
            so_far = (
                f", RAISE {last.conservative:.2f}, AIS {last.optimistic:.2f}, "
                f"effective {last.ess:,.0f} of {last.ais_chains:,}"
            )
        return f"stage {stage.number + 1}, {stage.size.steps:,} steps{so_far}"

    def finish(self, result: StageResult) -> FinishedStage[Report]:
        return self.subject.finish(result)


def _fingerprints(
    model: Model, test: States, train: States | None, base: Base | None, betas: Floats | None
) -> dict[str, str]:
    """What was evaluated, by short texts that differ when it does; `base` and `betas` are those that were given."""
    fingerprints = {"model": model.fingerprint(), "test set": fingerprint({"bits": test})}
    if train is not None:
        fingerprints["training set"] = fingerprint({"bits": train})
    if base is not None:
        fingerprints["base"] = fingerprint({str(k): bias for k, bias in enumerate(base.biases)}, base.name)
    if betas is not None:
        fingerprints["schedule"] = fingerprint({"betas": betas})
    return fingerprints


def _open_folder(
    run: str | os.PathLike[str] | None,
    model: Model,
    test: States,
    fingerprints: dict[str, str],
    settings: Settings,
    part: int,
) -> AbstractContextManager[RunFolder | None]:
    """The folder `run`, None if there is none."""
    if run is None:
        return nullcontext()
    chosen = vars(settings)
    specification = Specification(
        model=repr(model),
        test_examples=len(test),
        fingerprints=fingerprints,
        settings={name: value for name, value in chosen.items() if name not in _REPORTING},
        reporting_settings={name: chosen[name] for name in _REPORTING},
        versions=versions(),
        parts=(part,),
    )
    return open_run(run, specification)
