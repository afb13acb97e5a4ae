"""Recipes: a training run as a few lines of TOML, from which it can be repeated.

    model = "rbm"
    data = "mnist"
    hidden = 500
    method = "pcd"
    epochs = 40

`data` is a data set's name or a file. Of its examples the last `validation` ones are not trained on but
watched; a few percent if it is left out. All other keys are options of `train_rbm`, `train_dbn` or
`train_dbm`.
"""

import difflib
import inspect
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meltpoint.errors import InputError
from meltpoint.models import Model
from meltpoint.training.dbm import train_dbm
from meltpoint.training.dbn import train_dbn
from meltpoint.training.rbm import train_rbm

TRAINERS: dict[str, Callable[..., Model]] = {"rbm": train_rbm, "dbn": train_dbn, "dbm": train_dbm}
_NOT_CHOICES = {"data", "validation", "progress", "on_epoch", "checkpoint"}


@dataclass(frozen=True)
class Recipe:
    """Which model is trained on what data, how many examples are held out, and the trainer's options."""

    model: str
    data: str
    validation: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.model not in TRAINERS:
            raise InputError(
                found=f"model = {self.model!r}", expected="rbm, dbn or dbm", remedy="choose one of them"
            )
        known = option_names(self.model)
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


def option_names(model: str) -> list[str]:
    """Names of the options a model's trainer takes."""
    return [name for name in inspect.signature(TRAINERS[model]).parameters if name not in _NOT_CHOICES]


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
