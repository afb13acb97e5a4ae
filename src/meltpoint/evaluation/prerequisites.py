"""What an evaluation computes once besides its stages: log f, exact log Z, bases and the schedules from them, whether
the model is read as it was meant; and, for the report, samples of the model.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base, uniform
from meltpoint.annealing.schedule import as_betas
from meltpoint.defaults import SAMPLE_MOVES, Settings
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.base_rates import data_rates, rates_of_chains
from meltpoint.estimators.conventions import ConventionCheck, check_conventions
from meltpoint.estimators.exact import cheap_elimination, exact_log_z
from meltpoint.estimators.pilot import PILOT_STEPS, FrictionSchedule, pilot_steps_within, run_pilot
from meltpoint.estimators.sampling import sample_states
from meltpoint.kernels.compiling import preparing_kernels, seconds_compiling
from meltpoint.layers.unit import Floats, States
from meltpoint.models import Model
from meltpoint.models.log_f import SAMPLES as LOG_F_SAMPLES
from meltpoint.models.log_f import LogF
from meltpoint.progress import silent
from meltpoint.results.shown import sample_count
from meltpoint.results.words import EARLIER
from meltpoint.runs.batch import Batch, Items
from meltpoint.runs.contents import (
    CONVENTIONS,
    EXACT,
    LOG_F,
    SAMPLES,
    base_name,
    pilot_folder,
    schedule_name,
)
from meltpoint.runs.run import Run

EXACT_UNITS = 20
"""Most units of the smaller side for which log Z is enumerated by default: it takes less than a second."""

_SAMPLE_STEPS = 500  # whatever the evaluation had: the samples of a run do not change when it is continued
_LOG_F_EXAMPLES = (
    1024  # of a chunk: a minute of a core at most, and whole blocks of those that are computed at once
)
_PILOT_SHARE = 0.1  # fraction of a budget for the pilots of all bases
_PILOT_SECONDS = 3.0  # seconds that pilots may always take


class Clock:
    """Seconds of each part of an evaluation, and in all. It stands still while kernels are compiled."""

    def __init__(self) -> None:
        self._begun = self._last = self._now()
        self._compiled = seconds_compiling()
        self._laps: dict[str, float] = {}

    @staticmethod
    def _now() -> float:
        return time.perf_counter() - seconds_compiling()

    @property
    def elapsed(self) -> float:
        return self._now() - self._begun

    @property
    def since_lap(self) -> float:
        return self._now() - self._last

    def lap(self, name: str) -> None:
        """Count the time since the last lap for `name`."""
        self.add({name: self.since_lap})

    def add(self, laps: dict[str, float]) -> None:
        """Count laps that were timed elsewhere; the next one begins now."""
        for name, seconds in laps.items():
            self._laps[name] = self._laps.get(name, 0.0) + seconds
        self._last = self._now()

    def seconds(self) -> dict[str, float]:
        """Seconds by name, which add up to the total; those of `EARLIER` come on top."""
        self.lap("report")
        compiled = {"compiling kernels": seconds_compiling() - self._compiled}
        laps = (compiled if any(compiled.values()) else {}) | self._laps
        return {**laps, "total": math.fsum(t for name, t in laps.items() if name != EARLIER)}


@dataclass(frozen=True, eq=False)
class Origin:
    """Where annealing starts: a base, and the friction from there to the model, if it was measured."""

    base: Base
    friction: FrictionSchedule | None = None


@dataclass(frozen=True, eq=False)
class LogFRows:
    """`LogF` of some examples; `is_exact` is the same for all."""

    values: Annotated[Floats, "example"]
    stderrs: Annotated[Floats, "example"]
    bound: Annotated[Floats, "example"]
    rises: Annotated[Floats, "example", 2]
    is_exact: Annotated[NDArray[np.bool_], "example"]


@dataclass(frozen=True, eq=False)
class LogFOfExamples:
    """Log f of examples with these states (example, visible unit)."""

    model: Model
    states: States
    seed: int

    def prepare(self, progress: Progress | None) -> None:
        """Load the kernels."""
        with preparing_kernels(progress or silent):
            self.model.log_f_method(samples=1)(self.states[:1], np.arange(1))

    def compute(self, items: Items, progress: Progress) -> LogFRows:
        """Log f of some of them."""
        found = self.model.log_f_method(seed=self.seed)(self.states[items], items, progress=progress)
        is_exact = np.full(len(items), found.is_exact)
        return LogFRows(found.values, found.stderrs, found.bound, found.rises, is_exact)


def log_f_of(model: Model, states: States, seed: int, run: Run) -> LogF:
    """Log f of every test example (example, visible unit): exact, or estimated, which may take minutes."""

    def compute() -> LogF:
        with preparing_kernels(run.progress or silent):
            is_exact = model.log_f_method(samples=1)(states[:1], np.arange(1)).is_exact
        work = LogFOfExamples(model, states, seed)
        batch = Batch(LOG_F, work, len(states), float(LOG_F_SAMPLES), _LOG_F_EXAMPLES, short=is_exact)
        rows = run.results(batch, "unnormalised probabilities")
        found = LogF(rows.values, rows.stderrs, rows.bound, rows.rises, is_exact=bool(rows.is_exact.all()))
        return found if found.is_exact else found.controlled_by(*model.log_f_control(states, seed))

    return run.once(LOG_F, LogF, compute, example=len(states))


def exact_log_z_of(model: Model, exact: bool | None, run: Run) -> float | None:
    """The exact log Z if it is asked for or, with `exact` None, takes about a second; otherwise None."""
    if exact is False:
        return None
    if exact or model.smaller_side <= EXACT_UNITS:
        return run.once(EXACT, float, lambda: exact_log_z(model, threads=run.threads, progress=run.progress))
    found = run.recall(EXACT, float)
    if found is None:
        eliminated = cheap_elimination(model)
        if eliminated is not None:
            found = eliminated.log_z
            run.keep(EXACT, found)
    return found


@dataclass(frozen=True)
class Conventions:
    """The check of the conventions, None where there is none."""

    check: ConventionCheck | None


def conventions_of(model: Model, states: States, run: Run) -> ConventionCheck | None:
    """Whether states (example, visible unit) fit another reading of the model's parameters better."""

    def compute() -> Conventions:
        return Conventions(check_conventions(model, model.decode(states)))

    return run.once(CONVENTIONS, Conventions, compute).check


@dataclass(eq=False)
class Origins:
    """The bases of an evaluation by name, and friction from those that were tried; each is made once in a run.

    Their last bits may depend on the machine that computes them, and a schedule must be frozen before the run. `train`
    are states (example, visible unit), and `own` is the base that was given.
    """

    model: Model
    train: States | None
    own: Base | None
    settings: Settings
    run: Run
    clock: Clock
    _bases: dict[str, Base] = field(default_factory=dict)
    _tried: dict[str, Origin] = field(default_factory=dict)
    _candidates: int = 1

    def choose(self, names: Sequence[str]) -> Origin:
        """The origin with the smallest loss in its pilot; without pilots the first."""
        if self.settings.schedule != "friction":
            return self.at(names[0])
        self._candidates = len(names)
        pilots = [origin.friction.pilot for name in names if (origin := self.at(name)).friction]
        best = int(np.argmax(np.nan_to_num([pilot.kept for pilot in pilots], nan=-np.inf)))
        return self.at(names[best])

    def at(self, name: str) -> Origin:
        """The origin at the base of this name. Its pilot has the chain-steps of all that were run by then."""
        if name not in self._tried:
            base, friction = self.base(name), None
            if self.settings.schedule == "friction":
                friction = self.run.once(schedule_name(name), FrictionSchedule, lambda: self._pilot(base))
            self._tried[name] = Origin(base, friction)
        found = self._tried[name]
        frictions = [origin.friction for origin in self._tried.values() if origin.friction]
        return replace(found, friction=with_steps_of_all(found.friction, frictions))

    def base(self, name: str) -> Base:
        """The base of this name."""
        if name not in self._bases:
            base = self.run.once(base_name(name), Base, lambda: self._make(name))
            if base.name != name or any(np.isnan(bias).any() or bias.ndim == 0 for bias in base.biases):
                raise InputError(
                    found=f"the record {base_name(name)} of the run with other arrays than biases",
                    expected="the base as it was written",
                    remedy=f"remove {base_name(name)}.npz from the run's folder, or begin the run anew in another one",
                )
            self._bases[name] = base
        return self._bases[name]

    def _make(self, name: str) -> Base:
        if self.own is not None and self.own.name == name:
            return self.own
        if name == "uniform":
            return uniform()
        if name == "model":
            return rates_of_chains(self.model, self.settings.seed, self.run.inside(base_name(name)))
        if name == "data" and self.train is not None:
            return data_rates(self.model.decode(self.train), self.model)
        # The settings refuse it; a run's folder may still ask for it.
        raise InputError(
            found=f"a base named {name!r} in the run's folder",
            expected="'data' (with training data), 'model' or 'uniform'",
            remedy="restore the folder from a copy, or begin the run anew in another one",
        )

    def _pilot(self, base: Base) -> FrictionSchedule:
        run, steps = self.run.inside(pilot_folder(base.name)), PILOT_STEPS
        if self.settings.budget is not None:
            left = self.settings.budget - self.clock.elapsed
            share = max(_PILOT_SECONDS, _PILOT_SHARE * left) / self._candidates
            # As the clock has chosen them once in a run.
            steps = run.once("steps", int, lambda: pilot_steps_within(share, self.model, base, run))
            steps = min(PILOT_STEPS, max(1, steps))
        return run_pilot(self.model, self.train, base, steps, self.settings.seed, run)


def with_steps_of_all(
    friction: FrictionSchedule | None, frictions: Sequence[FrictionSchedule]
) -> FrictionSchedule | None:
    """The same friction, if there is one; its pilot has the chain-steps of all pilots."""
    if friction is None:
        return None
    spent = sum(each.pilot.chain_steps for each in frictions)
    return replace(friction, pilot=replace(friction.pilot, chain_steps=spent))


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of the model to look at."""

    states: Annotated[NDArray[Any], "sample", "unit"]


def samples_of(model: Model, seed: int, run: Run) -> NDArray[Any]:
    """States (sample, visible unit) of samples of the model to look at; none of very large ones.

    They are those of `sample(model, n, steps=500, seed=seed)`.
    """
    count = sample_count(model.n_visible)
    if not count:
        return np.zeros((0, 0), np.uint8)

    def compute() -> Samples:
        betas = as_betas(_SAMPLE_STEPS)
        return Samples(sample_states(model, count, betas, SAMPLE_MOVES, seed, run.inside(SAMPLES)))

    return run.once(SAMPLES, Samples, compute, sample=count, unit=model.n_visible).states
