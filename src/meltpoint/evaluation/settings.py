"""evaluate()'s arguments, checked, with the defaults of `Settings` filled in."""

import difflib
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import fields, replace
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import Steps, as_betas
from meltpoint.backends.numba.precision import Precision, check_precision
from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS, Settings
from meltpoint.errors import InputError
from meltpoint.estimators.pilot import ScheduleName
from meltpoint.layers.unit import Floats
from meltpoint.models.checks import check_count, check_switch
from meltpoint.randomness import check_seed
from meltpoint.results.stages import StageSummary
from meltpoint.statistics.certificate import check_confidence

BaseChoice: TypeAlias = Literal["auto", "data", "model", "uniform"]

Watch: TypeAlias = Callable[[StageSummary], None]
"""Called with each stage that is finished."""

TO_BE_CHOSEN = "chosen"
"""In place of a base's name: a pilot is to choose it."""


_ABOUT_PARTICLES = "1 is the paper's estimator; leave it out for all AIS chains"


class SharedOptions(TypedDict, total=False):
    """Keywords of evaluate() that evaluations of several models share; its docstring explains them."""

    particles: int | None
    base: BaseChoice | Base | None
    steps: Steps | None
    schedule: ScheduleName
    chains: int | None
    examples: int | None
    ais_chains: int | None
    precision: Precision
    tolerance: float | None
    exact: bool | None
    executor: Executor | None
    threads: int | None


def check_keywords(function: Callable[..., object], given: Iterable[str]) -> None:
    """Refuse what is not among the `SharedOptions` of a function: `Unpack` checks nothing at run time."""
    declared = SharedOptions.__annotations__
    for name in given:
        if name not in declared:
            parameters = inspect.signature(function).parameters.values()
            named = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
            near = difflib.get_close_matches(name, [*named, *declared], n=1)
            hint = f". Did you mean '{near[0]}'?" if near else ""
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'{hint}")


def resolve_settings(
    test_examples: int, train: ArrayLike | None, options: Mapping[str, Any]
) -> tuple[Settings, Floats | None]:
    """Checked settings from keywords of evaluate(), and the betas if they were given; None stands for a default.

    Sizes that stages are to choose are 0.
    """
    asked = {field.name: None for field in fields(Settings)} | dict(options)
    base, steps, particles, exact = (asked[name] for name in ("base", "steps", "particles", "exact"))
    steps_are_betas = steps is not None and np.ndim(steps) > 0

    def or_default(name: str) -> Any:  # noqa: ANN401
        return getattr(DEFAULTS, name) if asked[name] is None else asked[name]

    settings = replace(
        DEFAULTS,
        base=base_name(base, train),
        schedule="given" if steps_are_betas else _check_schedule(or_default("schedule")),
        seed=check_seed(or_default("seed")),
        precision=check_precision(or_default("precision")),  # pyright: ignore[reportArgumentType]
        tolerance=_check_nats(or_default("tolerance"), "tolerance", "1 is usual"),
        confidence=float(check_confidence(or_default("confidence"))),
        particles=None if particles is None else check_count(particles, "particles", _ABOUT_PARTICLES),
        evidence=check_switch(or_default("evidence"), "evidence"),
        exact=None if exact is None else check_switch(exact, "exact"),
    )
    if asked["gap"] is not None or asked["budget"] is not None:
        settings = replace(settings, **_resolve_target(asked, settings))
        if base in (None, "auto") and settings.schedule == "friction":
            settings = replace(settings, base=TO_BE_CHOSEN)
        return settings, None
    betas = as_betas(or_default("steps"))
    n = _check_example_count(asked["examples"], test_examples)
    remedy = "chains per example: 1 is enough with many steps, the paper uses 50"
    chains = check_count(or_default("chains"), "chains", remedy)
    ais_chains = n * chains if asked["ais_chains"] is None else asked["ais_chains"]
    ais_chains = check_count(ais_chains, "ais_chains", "1,000 are usual")
    if particles is not None and particles - 1 > ais_chains:
        raise InputError(
            found=f"particles={particles:,} with {ais_chains:,} AIS chains",
            expected=f"at most {ais_chains + 1:,}: each particle but the example's own is an AIS chain",
            remedy="raise ais_chains, or leave particles out",
        )
    settings = replace(settings, steps=betas.size - 1, examples=n, chains=chains, ais_chains=ais_chains)
    return settings, betas if steps_are_betas else None


def check_left_out(sizes: Mapping[str, object]) -> None:
    """Refuse sizes that are given together with a gap or a budget."""
    given = [name for name, value in sizes.items() if value is not None]
    if given:
        raise InputError(
            found=f"{given[0]} together with a gap or a budget",
            expected="one or the other",
            remedy=f"leave out {' and '.join(given)}: sizes follow from the gap and the budget",
        )


def _resolve_target(asked: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The settings of a run with a gap or a budget."""
    sizes = ("steps", "chains", "examples", "ais_chains")
    check_left_out({name: asked[name] for name in sizes})
    gap, budget, tolerance = asked["gap"], asked["budget"], settings.tolerance
    if gap is not None:
        gap = _check_nats(gap, "gap", "0.1 is a good answer")
        tolerance = gap if asked["tolerance"] is None else tolerance
    seconds = seconds_of(BUDGET_OF_GAP if budget is None else budget)
    return {"gap": gap, "budget": seconds, "tolerance": tolerance, **dict.fromkeys(sizes, 0)}


def base_name(base: BaseChoice | Base | None, train: ArrayLike | None) -> str:
    """The base's name: as given, or ("auto", None) "data" with training data and "model" without."""
    if isinstance(base, Base):
        return base.name
    name = ("model" if train is None else "data") if base in (None, "auto") else base
    if name not in get_args(BaseChoice):
        raise InputError(
            found=f"base={name!r}",
            expected="'auto', 'data', 'model', 'uniform', or a Base",
            remedy="'data' (with train) usually gives the smallest gap",
        )
    if name == "data" and train is None:
        raise InputError(
            found="base='data' without training data",
            expected="train, to take the base rates from",
            remedy="pass train (never the test set: that would leak it), or use base='model'",
        )
    return name


def candidate_bases(settings: Settings, train: ArrayLike | None) -> tuple[str, ...]:
    """Names of the bases to choose from: what was asked for, or where annealing usually starts, and uniform."""
    if settings.base != TO_BE_CHOSEN:
        return (settings.base,)
    return base_name(None, train), "uniform"


def _check_example_count(examples: int | None, available: int) -> int:
    usual = DEFAULTS.examples
    if examples is None:
        return min(usual, available)
    n = check_count(examples, "examples", f"{usual} are usual")
    if n > available:
        raise InputError(
            found=f"examples={n:,} with a test set of {available:,}",
            expected=f"at most {available:,}",
            remedy=f"leave it out for {usual}, or all if there are fewer",
        )
    return n


def _check_schedule(schedule: ScheduleName) -> ScheduleName:
    if schedule not in get_args(ScheduleName):
        raise InputError(
            found=f"schedule={schedule!r}",
            expected="'friction' or 'linear'",
            remedy="'friction' needs fewer steps; for betas of your own pass them as steps",
        )
    return schedule


def check_part(part: int) -> int:
    """A part's number, or an error."""
    if isinstance(part, bool) or not isinstance(part, int | np.integer) or part < 0:
        raise InputError(
            found=f"part={part!r}",
            expected="a whole number from 0 on",
            remedy="the first part is 0, the next one 1",
        )
    return int(part)


def seconds_of(budget: str | float) -> float:
    """Seconds of "30m", "2h", "90s", "1h30m", or of a number of seconds.

    >>> seconds_of("1h30m"), seconds_of("90s"), seconds_of(45)
    (5400.0, 90.0, 45.0)
    """
    if isinstance(budget, str):
        match = _DURATION.fullmatch(budget.strip().lower().replace(" ", ""))
        parts = match.groups() if match else ()
        seconds = sum(float(part) * unit for part, unit in zip(parts, (3600, 60, 1), strict=False) if part)
    else:
        seconds = math.nan if isinstance(budget, bool) else float(budget)
    if not 0 < seconds < math.inf:
        raise InputError(
            found=f"budget={budget!r}",
            expected="a length of time such as '30m', '2h', '90s' or '1h30m', or a number of seconds",
            remedy="half an hour is usual",
        )
    return float(seconds)


_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def _check_nats(value: float, name: str, remedy: str) -> float:
    if isinstance(value, bool) or not 0 < value < math.inf:
        raise InputError(found=f"{name}={value!r}", expected="a number of nats above 0", remedy=remedy)
    return float(value)
