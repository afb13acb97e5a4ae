"""The options of training: their names, defaults and limits, and recipes, which keep them as TOML.

Every default of training is defined here. The training functions and the command read them from here.
"""

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from meltpoint.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Method: TypeAlias = Literal["cd", "pcd"]
Schedule: TypeAlias = Literal["linear", "constant"]
_Allowed: TypeAlias = tuple[str, Callable[[Any], bool]]
"""What is expected of an option, in words, and whether a value is."""

_LEAST_EPOCHS = 30
_LEAST_UPDATES = 3000
_HELD_OUT_SHARE = 0.05
_LARGEST_HELD_OUT = 1000


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
        """Number of updates in one epoch."""
        return max(1, n_examples // self.batch)

    def n_epochs(self, n_examples: int) -> int:
        """Number of epochs: the given one, or the default for this many examples.

        >>> TrainingSettings().n_epochs(60_000), TrainingSettings().n_epochs(1500)
        (30, 200)
        """
        if self.epochs is not None:
            return self.epochs
        return max(_LEAST_EPOCHS, -(-_LEAST_UPDATES // self.n_batches(n_examples)))

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


_STAGE_OPTIONS = list(stage_options())
_OPTIONS = {
    "rbm": ["hidden", "visible", *_STAGE_OPTIONS, "seed"],
    "dbn": ["hidden", *_STAGE_OPTIONS, "seed"],
    "dbm": ["hidden", *_STAGE_OPTIONS, "sweeps", "seed"],
}
MODEL_NAMES = tuple(_OPTIONS)
"""The kinds of models that can be trained."""


def default_text(name: str) -> str:
    """An option's default as the command shows it.

    >>> default_text("epochs"), default_text("learning_rate")
    ('30, or 3,000 updates', '0.2; dbm: 0.1')
    """
    rules = {
        "epochs": f"{_LEAST_EPOCHS}, or {_LEAST_UPDATES:,} updates",
        "chains": "batch",
        "sweeps": str(MEAN_FIELD_SWEEPS),
        "validation": f"{_HELD_OUT_SHARE:.0%}, at most {_LARGEST_HELD_OUT:,}",
    }
    if name in rules:
        return rules[name]
    ours, dbm = (str(getattr(settings, name)).lower() for settings in (RBM_DEFAULTS, DBM_DEFAULTS))
    return ours if ours == dbm else f"{ours}; dbm: {dbm}"


def settings_of_stages(n_stages: int, *options: Any) -> list[TrainingSettings]:  # noqa: ANN401
    """Settings of each stage, from options that are one value for all or a sequence with one for each.

    The options are given in the order of the fields of `TrainingSettings`.
    """
    stages: list[dict[str, Any]] = [{} for _ in range(n_stages)]
    for name, value in zip(_STAGE_OPTIONS, options, strict=True):
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


@dataclass(frozen=True)
class Recipe:
    """A training run that can be repeated: the kind of model, the data, and the options of its training.

    As TOML:

        model = "rbm"
        data = "mnist"
        hidden = 500
        method = "pcd"
        epochs = 40

    `data` is a data set's name or a file. The last `validation` of its examples are held out; None is the
    command's default. All other keys are options of `train_rbm`, `train_dbn` or `train_dbm`.
    """

    model: str
    data: str
    validation: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.model not in MODEL_NAMES:
            raise InputError(
                found=f"model = {self.model!r}", expected="rbm, dbn or dbm", remedy="choose one of them"
            )
        if self.validation not in (None, 0):
            check_positive("validation", self.validation)
        known = _OPTIONS[self.model]
        for name in self.options:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise InputError(
                    found=f"an option {name!r}",
                    expected=f"options of a {self.model}: {', '.join(known)}",
                    remedy=f"did you mean {near[0]}?" if near else "leave it out",
                )

    @property
    def takes_rates(self) -> bool:
        """Whether the examples may be grey values in [0, 1], from which bits are drawn."""
        from meltpoint.layers import takes_rates

        return takes_rates(self.options.get("visible", "bernoulli"))

    def split(self, examples: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
        """Training examples and those that are held out: by default 5%, at most 1,000."""
        n = len(examples)
        held_out = min(_LARGEST_HELD_OUT, int(n * _HELD_OUT_SHARE))
        if self.validation is not None:
            held_out = self.validation
        if not 0 <= held_out < n:
            raise InputError(
                found=f"{held_out} validation examples of {n}",
                expected="fewer than there are",
                remedy="lower --validation",
            )
        return examples[: n - held_out], examples[n - held_out :]

    def __str__(self) -> str:
        """The same recipe as TOML."""
        lines = {"model": self.model, "data": self.data, **self.options}
        if self.validation is not None:
            lines["validation"] = self.validation
        return "".join(f"{name} = {_toml(value)}\n" for name, value in lines.items())


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """The recipe in a TOML file."""
    try:
        entries = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError(
            found=f"no readable file {os.fspath(path)!r}",
            expected="a recipe",
            remedy=f"correct the path ({problem})",
        ) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(
            found=f"{os.fspath(path)!r}, which is not TOML",
            expected='lines such as hidden = 500 and method = "pcd"',
            remedy=f"correct it ({problem})",
        ) from problem
    missing = [name for name in ("model", "data") if not isinstance(entries.get(name), str)]
    if missing:
        raise InputError(
            found=f"no {' and no '.join(missing)} in {os.fspath(path)!r}",
            expected='a line such as model = "rbm" or data = "mnist"',
            remedy="add it",
        )
    held_out = entries.pop("validation", None)
    return Recipe(entries.pop("model"), entries.pop("data"), held_out, entries)


def values_in(text: str) -> Any:  # noqa: ANN401
    """A value, or a list of values between commas: whole and real numbers, true and false, words.

    >>> values_in("40,20"), values_in("0.1"), values_in("true,false"), values_in("cd")
    ([40, 20], 0.1, [True, False], 'cd')
    """
    values = [_value(part.strip()) for part in text.split(",")]
    return values if len(values) > 1 else values[0]


def _value(text: str) -> int | float | bool | str:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text, text)


def _toml(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
