"""What a format leaves open, and the caller must say."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

import numpy as np

from meltpoint.errors import InputError
from meltpoint.formats.bounded import CEILING, described


@dataclass(frozen=True)
class Options:
    """What the readers of models and data can be told; None where it was left out.

    Parameters
    ----------
    orientation
        Axes of the weights in the file, "visible-hidden" or "hidden-visible"; asked for where they are square.
    visible, hidden
        Kinds of units: "bernoulli", "spin".
    weights, visible_bias, hidden_bias
        Names of the arrays in the file, where they have unusual ones.
    units
        "spin" or "bernoulli": the units of a graph whose file does not say.
    temperature, beta
        p is proportional to exp(-E / temperature) = exp(-beta E), for files that hold an energy E.
    states
        Number of states of every site.
    base
        Number of the first site and state, 0 or 1.
    alphabet
        Letters of the states, in the order they shall have in the model: "protein", "rna", "dna" or the letters.
    gap
        "state" if a gap is a state like the others, "masked" if the model has none.
    gauge
        "zero-sum" to move the couplings to the gauge in which their rows and columns sum to zero.
    update
        Which of the stored updates of training: its number, "first" or "last".
    outside
        What becomes of sequences with letters outside the alphabet: "refuse" or "drop".
    coupling, field
        Names of the attributes of a NetworkX graph's edges and nodes.
    member
        Which file of an archive.
    unpacked
        Megabytes that a packed file may be unpacked to, 256 by default.
    """

    orientation: str | None = None
    visible: str | None = None
    hidden: str | None = None
    weights: str | None = None
    visible_bias: str | None = None
    hidden_bias: str | None = None
    units: str | None = None
    temperature: float | None = None
    beta: float | None = None
    states: int | None = None
    base: int | None = None
    alphabet: str | None = None
    gap: str | None = None
    gauge: str | None = None
    update: int | str | None = None
    outside: str | None = None
    coupling: str | None = None
    field: str | None = None
    member: str | None = None
    unpacked: int | None = None

    @property
    def ceiling(self) -> int:
        """Bytes that the file may be unpacked to."""
        return CEILING if self.unpacked is None else self.unpacked << 20


NAMES = tuple(field.name for field in fields(Options))
"""Names of all options."""

_CHOICES: dict[str, tuple[object, ...]] = {
    "orientation": ("visible-hidden", "hidden-visible"),
    "units": ("spin", "bernoulli"),
    "base": (0, 1),
    "gap": ("state", "masked"),
    "gauge": ("zero-sum",),
    "outside": ("refuse", "drop"),
}


_KINDS = {name: get_args(kind)[:-1] for name, kind in get_type_hints(Options).items()}
_WORDS = {str: "text", int: "a whole number", float: "a number"}


def parse_options(given: dict[str, Any]) -> Options:
    """The options by name; unknown names, and values of other types than theirs, are refused."""
    present = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in given.items()
        if value is not None
    }
    for name, value in present.items():
        if name not in NAMES:
            raise InputError(
                found=f"option {name!r}", expected=f"one of {', '.join(NAMES)}", remedy="correct its name"
            )
        kinds, choices = _KINDS[name], _CHOICES.get(name)
        if type(value) not in kinds and not (float in kinds and type(value) is int):
            expected = " or ".join(_WORDS[kind] for kind in kinds)
        elif choices is not None and value not in choices:
            expected = " or ".join(map(repr, choices))
        elif name in ("states", "unpacked") and value < 1:
            expected = "a whole number from 1 on"
        else:
            continue
        raise InputError(found=f"{name}={described(value)}", expected=expected, remedy="correct it")
    return Options(**present)


def refuse_unused(options: Options, used: Collection[str], what: str) -> None:
    """Refuse options that do not apply to this format."""
    free = {*used, "unpacked"}
    unused = [name for name in NAMES if getattr(options, name) is not None and name not in free]
    if unused:
        raise InputError(
            found=f"{', '.join(unused)} for {what}",
            expected=f"only what this format leaves open: {', '.join(sorted(used)) or 'nothing'}",
            remedy="leave the others out",
        )


def refuse(options: Options, names: Collection[str], what: str) -> None:
    """Refuse options that say nothing about this file, as others of its format need them."""
    given = [name for name in names if getattr(options, name) is not None]
    if given:
        raise InputError(
            found=f"{', '.join(given)} for {what}", expected="nothing of that kind", remedy="leave it out"
        )


class MissingOptionError(InputError):
    """What a format leaves open was not said: the message asks for an option by its name."""


def ask(name: str, found: str, choices: str, remedy: str) -> MissingOptionError:
    """The error that asks for an option: what is open, its possible values, how to tell."""
    return MissingOptionError(found=f"{found}, and no {name}", expected=f"{name}={choices}", remedy=remedy)


def inverse_temperature(options: Options, where: str, default: float | None = None) -> float:
    """Beta of p ~ exp(-beta E), which energies do not hold, from one of the two ways to say it."""
    beta, temperature = options.beta, options.temperature
    if beta is None and temperature is None and default is not None:
        return default
    if (beta is None) == (temperature is None):
        raise MissingOptionError(
            found=f"{where}, an energy with{'out a temperature' if beta is None else ' both temperature and beta'}",
            expected="temperature=T (or beta=1/T): the model is exp(-E / T)",
            remedy="give the temperature that was sampled at or trained for; 1 if E is -log p",
        )
    value = beta if beta is not None else 1 / temperature if temperature else 0.0
    if not 0 < value < float("inf"):
        raise InputError(
            found=f"beta={beta}, temperature={temperature}", expected="a positive number", remedy="correct it"
        )
    return float(value)
