"""evaluate()'s own arguments: checked, and made from their names."""

import math
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.annealing.base import Base, data_rates, model_rates, uniform
from meltpoint.errors import InputError, Progress
from meltpoint.estimators.checks import check_count
from meltpoint.estimators.pilot import ScheduleName
from meltpoint.models import Model
from meltpoint.models.checks import Bits
from meltpoint.randomness import Purpose, generator

BaseName: TypeAlias = Literal["data", "model", "uniform"]


def check_model(model: Model) -> Model:
    """The model, or an error."""
    if not isinstance(model, Model):
        raise InputError(
            found=f"a model of type {type(model).__name__}",
            expected="an RBM, a DBM or a DBN",
            remedy="make one from its parameters, meltpoint.RBM(weights, visible_bias, hidden_bias), or load "
            "it, meltpoint.load(path)",
        )
    return model


def check_examples(examples: int | None, available: int) -> int:
    """The number of examples RAISE is run for: as given, or 100, or all if there are fewer."""
    if examples is None:
        return min(100, available)
    n = check_count(examples, "examples", "100 are usual")
    if n > available:
        raise InputError(
            found=f"examples={n:,} with a test set of {available:,}",
            expected=f"at most {available:,}",
            remedy="leave it out for 100, or all if there are fewer",
        )
    return n


def check_tolerance(tolerance: float) -> float:
    """A number of nats above 0."""
    if not 0 < tolerance < math.inf:
        raise InputError(
            found=f"tolerance={tolerance!r}", expected="a number of nats above 0", remedy="1 is usual"
        )
    return float(tolerance)


def check_schedule(schedule: ScheduleName) -> ScheduleName:
    """The schedule's name, or an error."""
    if schedule not in ("friction", "linear"):
        raise InputError(
            found=f"schedule={schedule!r}",
            expected="'friction' or 'linear'",
            remedy="'friction' needs fewer steps; for betas of your own pass them as steps",
        )
    return schedule


def choose_examples(available: int, n: int, seed: int) -> NDArray[np.integer]:
    """Positions (example,), in the test set, of the examples RAISE is run for."""
    return generator(seed, Purpose.EXAMPLES).choice(available, size=n, replace=False)


def base_name(base: BaseName | Base | None, train: ArrayLike | None) -> str:
    """The base's name: as given, or "data" with training data and "model" without."""
    if isinstance(base, Base):
        return base.name
    name = base if base is not None else ("model" if train is None else "data")
    if name not in ("data", "model", "uniform"):
        raise InputError(
            found=f"base={name!r}",
            expected="'data', 'model', 'uniform', or a Base",
            remedy="'data' (with train) usually gives the smallest gap",
        )
    if name == "data" and train is None:
        raise InputError(
            found="base='data' without training data",
            expected="train, to take the base rates from",
            remedy="pass train (never the test set: that would leak it), or use base='model'",
        )
    return name


def make_base(
    name: str, model: Model, train: Bits | None, seed: int, threads: int, progress: Progress | None
) -> Base:
    """The base distribution of this name."""
    if name == "uniform":
        return uniform()
    if name == "model":
        return model_rates(model, seed=seed, threads=threads, progress=progress)
    assert train is not None, "base_name has refused this"
    return data_rates(train, model)
