"""What a user may choose about a training run, with defaults that need no tuning on MNIST."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from meltpoint.errors import InputError

Method: TypeAlias = Literal["cd", "pcd"]
Schedule: TypeAlias = Literal["linear", "constant"]


@dataclass(frozen=True)
class Settings:
    """The choices of one training stage; every number is checked here."""

    method: Method = "pcd"
    k: int = 1
    epochs: int = 30
    batch: int = 100
    learning_rate: float = 0.05
    schedule: Schedule = "linear"
    momentum: float = 0.0
    weight_decay: float = 1e-4
    averaged: float = 0.2
    centred: bool = True
    chains: int | None = None

    def __post_init__(self) -> None:
        _one_of("method", self.method, ("cd", "pcd"))
        _one_of("schedule", self.schedule, ("linear", "constant"))
        for name in ("k", "epochs", "batch", "chains"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise InputError(
                    found=f"{name} = {value}", expected="a whole number from 1", remedy=f"raise {name}"
                )
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


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(
            found=f"{name} = {value!r}", expected=" or ".join(map(repr, choices)), remedy="choose one of them"
        )


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InputError(found=f"{name} = {value}", expected=f"{low:g} to {high:g}", remedy=f"change {name}")
