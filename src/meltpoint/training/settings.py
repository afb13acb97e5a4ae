"""What a user may choose about a training run, with defaults that need no tuning on MNIST."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from meltpoint.errors import InputError

Method: TypeAlias = Literal["cd", "pcd"]
Schedule: TypeAlias = Literal["linear", "constant"]


@dataclass(frozen=True)
class Settings:
    """The choices of one training stage; every number is checked here."""

    method: Method
    k: int
    epochs: int
    batch: int
    learning_rate: float
    schedule: Schedule
    momentum: float
    weight_decay: float
    averaged: float
    centred: bool
    chains: int | None

    def __post_init__(self) -> None:
        _one_of("method", self.method, ("cd", "pcd"))
        _one_of("schedule", self.schedule, ("linear", "constant"))
        for name in ("k", "epochs", "batch", "chains"):
            if name != "chains" or self.chains is not None:
                whole(name, getattr(self, name))
        _within("learning_rate", self.learning_rate, 0.0, 10.0)
        _within("momentum", self.momentum, 0.0, 0.999)
        _within("weight_decay", self.weight_decay, 0.0, 1.0)
        _within("averaged", self.averaged, 0.0, 1.0)
        if self.method == "cd" and self.chains is not None:
            raise InputError(
                found=f"chains = {self.chains} with method 'cd'",
                expected="chains with method 'pcd' only",
                remedy="contrastive divergence starts its chains at the data: leave chains out",
            )

    def rate(self, progress: float) -> float:
        """Learning rate after this fraction of the run."""
        return self.learning_rate * (1.0 - progress) if self.schedule == "linear" else self.learning_rate


def settings_of_stages(n_stages: int, **options: Any) -> list[Settings]:  # noqa: ANN401
    """Settings of each stage, from options that are one value for all or a sequence with one for each."""
    stages: list[dict[str, Any]] = [{} for _ in range(n_stages)]
    for name, value in options.items():
        each = value if isinstance(value, Sequence) and not isinstance(value, str) else [value] * n_stages
        if len(each) != n_stages:
            raise InputError(
                found=f"{name} with {len(each)} values",
                expected=f"one value, or {n_stages}, one for each stage of the training",
                remedy="the stages are the hidden layers, lowest first",
            )
        for stage, one in zip(stages, each, strict=True):
            stage[name] = one
    return [Settings(**stage) for stage in stages]


def whole(name: str, value: Any) -> int:  # noqa: ANN401
    """A whole number from 1, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(found=f"{name} = {value}", expected="a whole number from 1", remedy=f"change {name}")
    return value


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(
            found=f"{name} = {value!r}", expected=" or ".join(map(repr, choices)), remedy="choose one of them"
        )


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(found=f"{name} = {value}", expected=f"{low:g} to {high:g}", remedy=f"change {name}")
