"""Recipes: what a training needs to be repeated, as options of the command and as TOML."""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meltpoint.arguments import Number, read
from meltpoint.errors import InputError
from meltpoint.training.settings import (
    DBM_DEFAULTS,
    LEAST_EPOCHS,
    LEAST_UPDATES,
    MEAN_FIELD_SWEEPS,
    RBM_DEFAULTS,
    stage_options,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HELD_OUT_SHARE = 0.05
_LARGEST_HELD_OUT = 1000

_OPTIONS = {
    "rbm": ["hidden", "visible", *stage_options(), "seed"],
    "dbn": ["hidden", *stage_options(), "seed"],
    "dbm": ["hidden", *stage_options(), "sweeps", "seed"],
}
MODEL_NAMES = tuple(_OPTIONS)
"""The kinds of models that can be trained."""


def default_text(name: str) -> str:
    """An option's default as the command shows it.

    >>> default_text("epochs"), default_text("learning_rate")
    ('30, or 3,000 updates', '0.2; dbm: 0.1')
    """
    rules = {
        "epochs": f"{LEAST_EPOCHS}, or {LEAST_UPDATES:,} updates",
        "chains": "batch",
        "sweeps": str(MEAN_FIELD_SWEEPS),
        "validation": f"{_HELD_OUT_SHARE:.0%}, at most {_LARGEST_HELD_OUT:,}",
    }
    if name in rules:
        return rules[name]
    ours, dbm = (str(getattr(settings, name)).lower() for settings in (RBM_DEFAULTS, DBM_DEFAULTS))
    return ours if ours == dbm else f"{ours}; dbm: {dbm}"


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
        read(Number | None, self.validation, "validation")
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
        from meltpoint.layers import kind_of_layer  # the command's help waits for no NumPy

        return kind_of_layer(self.options.get("visible", "bernoulli")).takes_rates

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
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)
