"""The options of training: their names, defaults and limits, and recipes, which keep them as TOML.

Every default of training is defined here. The training functions and the command read them from here.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeAlias

from meltpoint.errors import InputError

Method: TypeAlias = Literal["cd", "pcd"]
Schedule: TypeAlias = Literal["linear", "constant"]

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
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(found=f"{name} = {value}", expected="a whole number from 1", remedy=f"change {name}")
    return value


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:  # noqa: ANN401
    if value not in choices:
        raise InputError(
            found=f"{name} = {value!r}", expected=" or ".join(map(repr, choices)), remedy="choose one of them"
        )


def _check_range(name: str, value: Any, low: float, high: float) -> None:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise InputError(found=f"{name} = {value}", expected=f"{low:g} to {high:g}", remedy=f"change {name}")


@dataclass(frozen=True)
class TrainingSettings:
    """The options of one stage of training; every value is checked here.

    `epochs` None is 30, or as many as make 3,000 updates: few examples make few updates in an epoch.
    """

    method: Method = "pcd"
    k: int = 1
    epochs: int | None = None
    batch: int = 100
    learning_rate: float = 0.2
    schedule: Schedule = "linear"
    momentum: float = 0.0
    weight_decay: float = 1e-4
    averaged: float = 0.2
    centred: bool = True
    chains: int | None = None

    def __post_init__(self) -> None:
        _check_choice("method", self.method, ("cd", "pcd"))
        _check_choice("schedule", self.schedule, ("linear", "constant"))
        _check_choice("centred", self.centred, (True, False))
        for name in ("k", "epochs", "batch", "chains"):
            if name in ("k", "batch") or getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        _check_range("learning_rate", self.learning_rate, 0.0, 10.0)
        _check_range("momentum", self.momentum, 0.0, 0.999)
        _check_range("weight_decay", self.weight_decay, 0.0, 1.0)
        _check_range("averaged", self.averaged, 0.0, 1.0)
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


RBM_DEFAULTS = TrainingSettings()
DBN_DEFAULTS = TrainingSettings()
DBM_DEFAULTS = TrainingSettings(learning_rate=0.1)
RBM_HIDDEN = 500
DBN_HIDDEN = (500, 2000)
DBM_HIDDEN = (500, 1000)
MEAN_FIELD_SWEEPS = 10
SEED = 0


_STAGE_OPTIONS = [field.name for field in fields(TrainingSettings)]
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


def n_held_out(n_examples: int) -> int:
    """How many examples the command holds out by default: 5%, at most 1,000."""
    return min(_LARGEST_HELD_OUT, int(n_examples * _HELD_OUT_SHARE))


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


def _toml(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)
