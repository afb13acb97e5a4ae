"""The options of training: their names, defaults, limits and help.

Every default of training is defined here. The training functions and the command read them from here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from meltpoint.errors import InputError

Method: TypeAlias = Literal["cd", "pcd"]
Schedule: TypeAlias = Literal["linear", "constant"]
_Allowed: TypeAlias = tuple[str, Callable[[Any], bool]]
"""What is expected of an option, in words, and whether a value is."""

LEAST_EPOCHS = 30
LEAST_UPDATES = 3000


def hidden_sizes(hidden: Any) -> tuple[int, ...]:  # noqa: ANN401
    """Sizes of the hidden layers, lowest first, from a sequence or from one number."""
    several = isinstance(hidden, Sequence) and not isinstance(hidden, str) and len(hidden) > 0
    return tuple(check_positive("hidden", size) for size in (hidden if several else [hidden]))


def check_positive(name: str, value: Any) -> int:  # noqa: ANN401
    """A whole number from 1, or an error that names it."""
    return _check(name, value, _COUNT)


def _check(name: str, value: Any, allowed: _Allowed) -> Any:  # noqa: ANN401
    expected, fits = allowed
    if not fits(value):
        raise InputError(found=f"{name} = {value!r}", expected=expected, remedy=f"change {name}")
    return value


def _one_of(*choices: Any) -> _Allowed:  # noqa: ANN401
    return " or ".join(map(repr, choices)), lambda value: value in choices


def _between(low: float, high: float) -> _Allowed:
    return (
        f"{low:g} to {high:g}",
        lambda value: isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) <= high,
    )


def _is_count(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_COUNT = "a whole number from 1", _is_count
_COUNT_OR_NONE = "a whole number from 1", lambda value: value is None or _is_count(value)


@dataclass(frozen=True)
class TrainingSettings:
    """The options of one stage of training: type, what is allowed, the command's help, default.

    `epochs` None is 30, or as many as make 3,000 updates: few examples make few updates in an epoch.
    """

    method: Annotated[Method, _one_of("cd", "pcd"), "pcd or cd."] = "pcd"
    k: Annotated[int, _COUNT, "Gibbs steps of each update."] = 1
    epochs: Annotated[int | None, _COUNT_OR_NONE, "How often every example is shown."] = None
    batch: Annotated[int, _COUNT, "Examples of one update."] = 100
    learning_rate: Annotated[float, _between(0, 10), "Step size of the first update."] = 0.2
    schedule: Annotated[Schedule, _one_of("linear", "constant"), "linear (to zero) or constant."] = "linear"
    momentum: Annotated[float, _between(0, 0.999), "0 to 0.999."] = 0.0
    weight_decay: Annotated[float, _between(0, 1), "Decay rate of the weights."] = 1e-4
    averaged: Annotated[
        float, _between(0, 1), "Fraction of the last updates whose parameters are averaged."
    ] = 0.2
    centred: Annotated[bool, _one_of(True, False), "true or false: centre the units."] = True
    chains: Annotated[int | None, _COUNT_OR_NONE, "Persistent chains."] = None

    def __post_init__(self) -> None:
        for name, (allowed, _) in stage_options().items():
            _check(name, getattr(self, name), allowed)
        if self.method == "cd" and self.chains is not None:
            raise InputError(
                found=f"chains = {self.chains} with method 'cd'",
                expected="chains with method 'pcd' only",
                remedy="contrastive divergence starts its chains at the data: leave chains out",
            )

    def n_batches(self, n_examples: int) -> int:
        return max(1, n_examples // self.batch)

    def n_epochs(self, n_examples: int) -> int:
        """Number of epochs: the given one, or the default for this many examples.

        >>> TrainingSettings().n_epochs(60_000), TrainingSettings().n_epochs(1500)
        (30, 200)
        """
        if self.epochs is not None:
            return self.epochs
        return max(LEAST_EPOCHS, -(-LEAST_UPDATES // self.n_batches(n_examples)))

    def rate(self, progress: float) -> float:
        """Learning rate after this fraction of the stage."""
        return self.learning_rate * (1.0 - progress) if self.schedule == "linear" else self.learning_rate


@cache
def stage_options() -> dict[str, tuple[_Allowed, str]]:
    """What is allowed for each option of a stage, and the command's help."""
    hints = get_type_hints(TrainingSettings, include_extras=True)
    return {name: hint.__metadata__ for name, hint in hints.items()}


RBM_DEFAULTS = TrainingSettings()
DBN_DEFAULTS = TrainingSettings()
DBM_DEFAULTS = TrainingSettings(learning_rate=0.1)
RBM_HIDDEN = 500
DBN_HIDDEN = (500, 2000)
DBM_HIDDEN = (500, 1000)
MEAN_FIELD_SWEEPS = 10
SEED = 0


def settings_of_stages(n_stages: int, *options: Any) -> list[TrainingSettings]:  # noqa: ANN401
    """Settings of each stage, from options that are one value for all or a sequence with one for each.

    The options are given in the order of the fields of `TrainingSettings`.
    """
    stages: list[dict[str, Any]] = [{} for _ in range(n_stages)]
    for name, value in zip(stage_options(), options, strict=True):
        each = value if isinstance(value, Sequence) and not isinstance(value, str) else [value] * n_stages
        if len(each) != n_stages:
            raise InputError(
                found=f"{name} with {len(each)} values",
                expected=f"one value, or {n_stages}, one for each stage of the training",
                remedy="the stages are the hidden layers, lowest first; a dbm has one more, for all layers together",
            )
        for stage, one in zip(stages, each, strict=True):
            stage[name] = one
    return [TrainingSettings(**stage) for stage in stages]
