"""evaluate()'s arguments, checked, with the defaults of `Settings` filled in."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import fields, replace
from typing import Any, Literal, TypeAlias, TypedDict

from numpy.typing import ArrayLike

from meltpoint.annealing.base import Base
from meltpoint.annealing.schedule import Steps, are_betas, as_betas
from meltpoint.arguments import Budget, Count, Positive, Threads, read
from meltpoint.backends.numba.precision import Precision
from meltpoint.defaults import BUDGET_OF_GAP, DEFAULTS, Settings
from meltpoint.errors import InputError
from meltpoint.estimators.pilot import ScheduleName
from meltpoint.layers.unit import Floats
from meltpoint.results.stages import StageSummary

BaseChoice: TypeAlias = Literal["auto", "data", "model", "uniform"]

Watch: TypeAlias = Callable[[StageSummary], None]
"""Called with each stage that is finished."""

TO_BE_CHOSEN = "chosen"
"""In place of a base's name: a pilot is to choose it."""


class SharedOptions(TypedDict, total=False):
    """Keywords of evaluate() that evaluations of several models share; its docstring explains them."""

    particles: Count | None
    base: BaseChoice | Base | None
    steps: Steps | None
    schedule: ScheduleName
    chains: Count | None
    examples: Count | None
    ais_chains: Count | None
    precision: Precision
    tolerance: Positive | None
    exact: bool | None
    executor: Executor | None
    threads: Threads | None


def resolve_settings(
    test_examples: int, train: ArrayLike | None, options: Mapping[str, Any]
) -> tuple[Settings, Floats | None]:
    """Checked settings from keywords of evaluate(), and the betas if they were given; None stands for a default.

    Sizes that stages are to choose are 0.
    """
    asked = {field.name: None for field in fields(Settings)} | dict(options)
    base, steps, particles, exact = (asked[name] for name in ("base", "steps", "particles", "exact"))
    steps_are_betas = are_betas(steps)

    def or_default(name: str) -> Any:  # noqa: ANN401
        return getattr(DEFAULTS, name) if asked[name] is None else asked[name]

    settings = replace(
        DEFAULTS,
        base=base_name(base, train),
        schedule="given" if steps_are_betas else or_default("schedule"),
        particles=particles,
        exact=exact,
        **{name: or_default(name) for name in ("seed", "precision", "tolerance", "confidence", "evidence")},
    )
    if asked["gap"] is not None or asked["budget"] is not None:
        settings = replace(settings, **_resolve_target(asked, settings))
        if base in (None, "auto") and settings.schedule == "friction":
            settings = replace(settings, base=TO_BE_CHOSEN)
        return settings, None
    betas = as_betas(or_default("steps"))
    n = _check_example_count(asked["examples"], test_examples)
    chains = or_default("chains")
    ais_chains = read(Count, asked["ais_chains"] or n * chains, "ais_chains")
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
    if gap is not None and asked["tolerance"] is None:
        tolerance = gap
    seconds = read(Budget, BUDGET_OF_GAP if budget is None else budget, "budget")
    return {"gap": gap, "budget": seconds, "tolerance": tolerance, **dict.fromkeys(sizes, 0)}


def base_name(base: BaseChoice | Base | None, train: ArrayLike | None) -> str:
    """The base's name: as given, or ("auto", None) "data" with training data and "model" without."""
    if isinstance(base, Base):
        return base.name
    name = ("model" if train is None else "data") if base in (None, "auto") else base
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
    if examples > available:
        raise InputError(
            found=f"examples={examples:,} with a test set of {available:,}",
            expected=f"at most {available:,}",
            remedy=f"leave it out for {usual}, or all if there are fewer",
        )
    return examples
