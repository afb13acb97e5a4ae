"""What a format declares: its name, how it is recognised, what it leaves open, and what is read from it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.options import Options
from meltpoint.formats.source import Source
from meltpoint.models import Model


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers (row, column), the columns' names if there is a header, and names of columns that are not numbers."""

    values: NDArray[np.float64]
    names: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A format of files. Each stands in a file of its own; `registry.FORMATS` has all of them.

    Parameters
    ----------
    name
        What it is called in messages.
    suffixes
        How names of such files end. They are for people: a file is recognised by its content.
    recognises
        Whether a file is of this format. Formats that come earlier in the registry are asked first.
    options
        Names of the `Options` that say what the format leaves open.
    model
        The model in a file, None if there are no models in this format.
    array
        One array of a file, by its name where several have names; None if there are no data in this format.
    examples
        The examples in a file, where they are more than the array: a table with names, or sequences.
    """

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[Source], bool]
    options: Collection[str] = ()
    model: Callable[[Source, Options], Model] | None = None
    array: Callable[[Source, str | None], NDArray[Any]] | None = None
    examples: Callable[[Source, Options], Table | NDArray[Any]] | None = None


def choose(source: Source, name: str | None, names: list[str]) -> str:
    """The array that was asked for, or the only one there is."""
    listed = ", ".join(names) or "none"
    if not names:
        raise InputError(
            found=f"{source.name}, without an array of numbers",
            expected="at least one",
            remedy="check how it was saved",
        )
    if name is None and len(names) > 1:
        raise InputError(
            found=f"{len(names)} arrays in {source.name}: {listed}",
            expected="the name of one of them",
            remedy=f"name it behind a colon, {source.path}:{names[0]}",
        )
    if name is not None and name not in names:
        raise InputError(
            found=f"no array {name!r} in {source.name}",
            expected=f"one of its arrays: {listed}",
            remedy="check the name",
        )
    return names[0] if name is None else name


def without_name(source: Source, name: str | None) -> None:
    """Refuse a name for the one array of a file."""
    if name is not None:
        raise InputError(
            found=f"name {name!r} for {source.name}, whose one array has no name",
            expected="no name",
            remedy="leave the name out",
        )
