"""log_z(): the normaliser of a model alone, from both sides: an evaluation without examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import as_betas
from meltpoint.arguments import Budget, Confidence, Count, Positive, Seed, Several, Threads, public
from meltpoint.backends.numba.precision import Precision
from meltpoint.defaults import LOG_Z_DEFAULTS, LogZSettings
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.ais import ais_batch
from meltpoint.estimators.chain_batches import Annealing
from meltpoint.estimators.elimination import Eliminated
from meltpoint.estimators.evidence import Starts
from meltpoint.estimators.exact import cheap_elimination
from meltpoint.estimators.log_z_sides import Sides
from meltpoint.estimators.starts import reverse_log_weights
from meltpoint.evaluation.prerequisites import EXACT_UNITS, Clock, Origins, exact_log_z_of
from meltpoint.evaluation.reporting import FinishedStage, alpha_of_stage
from meltpoint.evaluation.settings import BaseChoice, check_left_out, resolve_settings
from meltpoint.evaluation.stage import Stage, StageResult, stage_seed
from meltpoint.evaluation.stages import Evaluation
from meltpoint.formats.objects import ModelLike, from_object
from meltpoint.layers.unit import Floats
from meltpoint.randomness import Purpose, generator
from meltpoint.results.log_z import LogZBracket, LogZStage, compose_log_z, stage_of
from meltpoint.runs.run import Run
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp

WatchLogZ: TypeAlias = Callable[[LogZStage], None]
"""Called with each stage that is finished."""

_TRIAL_STEPS, _TRIAL_CHAINS = 100, 100
_TRIAL_SHARE = 10  # steps for one step of the trial, if they were given
_START_SHARE = 4  # forward chains for one chain of each other start
_MELTED_SHARE = 2  # chains of a start for one of its end states that is melted
_LEAST_START = 32
_TRIAL = 1000  # number of the trial among stages
_EXACT_KEY = (
    1000  # of the random numbers of exact samples and of their melting: other starts have smaller ones
)
_APART = 0.1  # nats between trials that are not attributed to noise


@public
def log_z(
    model: ModelLike,
    *,
    clamped: Mapping[int, int] | None = None,
    train: ArrayLike | None = None,
    base: BaseChoice | Base = "auto",
    gap: Positive | None = None,
    budget: Budget | None = None,
    steps: Count | None = None,
    chains: Several | None = None,
    exact: bool | None = None,
    seed: Seed = LOG_Z_DEFAULTS.seed,
    precision: Precision = LOG_Z_DEFAULTS.precision,  # pyright: ignore[reportArgumentType]
    tolerance: Positive | None = None,
    confidence: Confidence = LOG_Z_DEFAULTS.confidence,
    threads: Threads | None = None,
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
    given = dict(locals())  # these keywords by name: spelt here and in `Settings`
    assert not isinstance(progress, bool), "public() has made a callback of it"
    clock = Clock()
    model = from_object(model)
    in_stages = gap is not None or budget is not None
    del given["chains"]  # which are those of RAISE in an evaluation
    if in_stages:
        check_left_out({"steps": steps, "chains": chains})
    else:
        given["ais_chains"] = LOG_Z_DEFAULTS.chains if chains is None else chains
    settings, betas = resolve_settings(0, train, given)
    if clamped and train is not None:
        raise InputError(
            found="train and clamped units",
            expected="one or the other: rates of training data are not those of the clamped model",
            remedy="leave out train",
        )
    known = None if train is None else model.encode(train, "train")
    if clamped:
        model = model.given(clamped)
    own_base = base if isinstance(base, Base) else None
    if own_base is not None:
        model.path(own_base)
    run = Run(threads, progress)
    eliminated = None if settings.exact is False else cheap_elimination(model)
    if eliminated is not None:
        exact_log_z = eliminated.log_z
    else:  # what takes a second by elimination was tried
        wanted = settings.exact is not False and (settings.exact or model.smaller_side <= EXACT_UNITS)
        exact_log_z = exact_log_z_of(model, bool(wanted), run)
    clock.lap("exact")
    origins = Origins(model, known, own_base, settings, run, clock)
    bases = ["data"] if known is not None else []
    bases += ["model", "uniform"]
    if own_base is not None and own_base.name not in bases:
        bases.append(own_base.name)
    evaluation = LogZEvaluation(
        model=model,
        settings=settings,
        betas=betas,
        origins=origins,
        base=_try_bases(bases, origins, run) if base == "auto" else settings.base,
        base_is_free=base == "auto",
        test=np.zeros((0, model.n_visible), np.uint8),
        given_seed=stage_seed(settings.seed, 0),
        run=run,
        clock=clock,
        clamped=len(clamped or ()),
        bases=bases,
        exact_log_z=exact_log_z,
        eliminated=eliminated,
        watch=watch,
    )
    bracket = evaluation.run_stages()
    return replace(bracket, seconds=clock.seconds(), interrupted=evaluation.stopped)


@dataclass(eq=False, kw_only=True)
class LogZEvaluation(Evaluation[LogZBracket]):
    """An evaluation without examples: states of the model are melted back in their place."""

    clamped: int
    bases: list[str]
    exact_log_z: float | None
    eliminated: Eliminated | None

    def other_starts(self, stage: Stage) -> tuple[list[tuple[Base, Floats]], dict[str, int]]:
        linear = as_betas(stage.size.steps)
        others = [(self.origins.base(name), linear) for name in self.bases if name != stage.base.name]
        chains = max(_LEAST_START, stage.size.ais_chains // _START_SHARE)
        # Chains of the chosen base have end states of their own, apart from the forward chains.
        return [(stage.base, stage.betas), *others], {
            "chains": chains,
            "melted": max(2, chains // _MELTED_SHARE),
        }

    def task(self, stage: Stage) -> str:
        return "AIS"

    def finish(self, result: StageResult) -> FinishedStage[LogZBracket]:
        stage, s = result.stage, self.settings
        if len(result.log_weights) < 2:
            raise KeyboardInterrupt
        own = {"base": stage.base.name, "steps": stage.size.steps, "chains": stage.size.ais_chains}
        bracket = compose_log_z(
            model=repr(self.model),
            clamped=self.clamped,
            settings=LogZSettings(
                **{each.name: getattr(s, each.name) for each in fields(LogZSettings)} | own
            ),
            sides=Sides(result.log_weights, result.starts or Starts(), result.exact_reverse),
            rests_on=self._rests_on(result),
            exact=self.exact_log_z,
            alpha=alpha_of_stage(s, stage.number),
        )
        summary = stage_of(bracket)
        return FinishedStage(result, replace(bracket, stages=(summary,)), summary)

    def with_starts(self, result: StageResult) -> StageResult:
        """A complete stage with what other starts found, and with exact samples melted back where there are some."""
        result, stage = super().with_starts(result), result.stage
        if self.eliminated is None:
            return result
        how = self.computation(stage, self.run)
        n = max(2, stage.size.ais_chains // _START_SHARE)
        units = self.eliminated.sample(n, generator(stage.seed, Purpose.SAMPLE, _EXACT_KEY))
        states, along = self.model.undirected.state_of(units), how.along(self.model, stage.base)
        return replace(result, exact_reverse=reverse_log_weights(along, stage.betas, states, _EXACT_KEY, how))

    def _rests_on(self, result: StageResult) -> str:
        """What the upper side and the interval rest on."""
        if result.exact_reverse is not None and self.eliminated is not None:
            n, width = len(result.exact_reverse), self.eliminated.order.width
            return f"{n:,} exact samples by elimination (width {width}): nothing is assumed"
        if result.starts is None or self.eliminated is not None:
            return "nothing: the states were not melted back before Ctrl-C"
        starts = result.starts
        sides = Sides(np.zeros(2), starts)
        modes = f", {starts.weighed:,} of them at modes of the model" if starts.weighed else ""
        return (
            f"{len(sides.melted):,} end states of chains from all starts, drawn by weight: the upper side and the "
            f"interval hold if no start missed a mode; {sides.n_starts:,} gave weights{modes}"
        )


def _try_bases(names: list[str], origins: Origins, run: Run) -> str:
    """The base to start from, by a short trial from each."""
    s = origins.settings
    betas = as_betas(max(_TRIAL_STEPS, s.steps // _TRIAL_SHARE))
    # No chain of the trial may come back in the bracket that its choice decides on.
    seed = stage_seed(s.seed, _TRIAL)
    trials: dict[str, Floats] = {}
    for name in names:
        annealing = Annealing(origins.model, origins.base(name), s.precision)  # pyright: ignore[reportArgumentType]
        trials[name] = run.results(ais_batch(annealing, betas, _TRIAL_CHAINS, seed), "AIS").log_weights
    origins.clock.lap("bases")
    return choose_base(trials)


def choose_base(trials: Mapping[str, Floats]) -> str:
    """The base to start from, by log weights (chain,) of a trial from each.

    Each mean weight is a lower bound on Z, so those that lie below the largest by more than noise are out; of the rest
    the one with the largest mean log weight, which loses least on its way.

    >>> choose_base({"model": np.zeros(10), "uniform": np.linspace(-9, -3, 10)})
    'model'
    """
    values = {name: float(log_mean_exp(w)) for name, w in trials.items()}
    errors = {name: float(np.nan_to_num(log_mean_error(w))) for name, w in trials.items()}
    most = max(values, key=lambda name: values[name])
    near = [
        name
        for name in trials
        if values[most] - values[name] <= _APART + 2 * math.hypot(errors[most], errors[name])
    ]
    return max(near, key=lambda name: float(np.mean(trials[name])))
