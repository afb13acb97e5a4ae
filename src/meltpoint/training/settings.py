"""The options of training: their names, defaults, limits and help.

Every default of training is defined here. The training functions and the command read them from here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from meltpoint.arguments import Count, Doc, Range, Share, field_hints, help_of, read_fields
from meltpoint.errors import InputError

Method: TypeAlias = Literal["cd", "pcd"]
Schedule: TypeAlias = Literal["linear", "constant"]
LearningRate: TypeAlias = Annotated[float, Range(0, 10, whole=False)]
Momentum: TypeAlias = Annotated[float, Range(0, 0.999, whole=False)]

LEAST_EPOCHS = 30
LEAST_UPDATES = 3000


def hidden_sizes(hidden: int | Sequence[int]) -> tuple[int, ...]:
    """Sizes of the hidden layers, lowest first, from a sequence or from one number."""
    sizes = [hidden] if isinstance(hidden, int) else hidden
    if not sizes:
        raise InputError(
            found="hidden without a layer", expected="at least one", remedy="for example hidden=(500,)"
        )
    return tuple(sizes)


@dataclass(frozen=True)
class TrainingSettings:
    """The options of one stage of training: type, what is allowed, the command's help, default.

    `epochs` None is 30, or as many as make 3,000 updates: few examples make few updates in an epoch.
    """

    method: Annotated[Method, Doc("pcd or cd.")] = "pcd"
    k: Annotated[Count, Doc("Gibbs steps of each update.")] = 1
    epochs: Annotated[Count | None, Doc("How often every example is shown.")] = None
    batch: Annotated[Count, Doc("Examples of one update.")] = 100
    learning_rate: Annotated[LearningRate, Doc("Step size of the first update.")] = 0.2
    schedule: Annotated[Schedule, Doc("linear (to zero) or constant.")] = "linear"
    momentum: Annotated[Momentum, Doc("0 to 0.999.")] = 0.0
    weight_decay: Annotated[Share, Doc("Decay rate of the weights.")] = 1e-4
    averaged: Annotated[Share, Doc("Fraction of the last updates whose parameters are averaged.")] = 0.2
    centred: Annotated[bool, Doc("true or false: centre the units.")] = True
    chains: Annotated[Count | None, Doc("Persistent chains.")] = None

    def __post_init__(self) -> None:
        read_fields(self)
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


def stage_options() -> dict[str, str]:
    """The options of a stage with the command's help."""
    return {name: help_of(hint) for name, hint in field_hints(TrainingSettings).items()}


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
