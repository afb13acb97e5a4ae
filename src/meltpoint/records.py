"""Frozen records of plain values and arrays: as JSON and back, and how they print themselves."""

import html
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

R = TypeVar("R")


NOT_WRITTEN = {"written": False}
"""Metadata of a field that JSON does not have, or has in another place."""


class Record:
    """A dataclass whose JSON is that of its fields, and of the properties that `also_written` names."""

    also_written: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values; a number that is not finite is None."""
        return plain_fields(self)


def plain(value: Any) -> Any:  # noqa: ANN401
    """A value as JSON has it: records by their `to_dict` or their fields, sequences as lists, NaN and infinity as None.

    >>> plain((1, math.inf, None, np.arange(2), {"a": 0.5}))
    [1, None, None, [0, 1], {'a': 0.5}]
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return finite_or_none(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return plain_fields(value) if is_dataclass(value) else value


def plain_fields(record: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:  # noqa: ANN401
    """The fields of a record by name as JSON has them, and what is written besides."""
    names = {
        field.name: field.metadata.get("key", field.name)
        for field in fields(record)
        if field.name not in without and field.metadata.get("written", True)
    }
    names |= {name: name for name in getattr(record, "also_written", ())}
    return {key: plain(getattr(record, name)) for name, key in names.items()}


def finite_or_none(value: float) -> float | None:
    """JSON has neither NaN nor infinity: None stands for both."""
    return float(value) if math.isfinite(value) else None


def from_plain(kind: type[R], content: Mapping[str, Any]) -> R:
    """The record of a type that its JSON describes, by the types of its fields.

    A field that is missing has its default. Metadata of a field say its name in JSON where that is another ("key"), and
    what None stands for where that is not NaN ("unknown"). Wrong content is a KeyError, TypeError, ValueError or
    AttributeError.

    >>> from meltpoint.statistics.estimate import Estimate
    >>> from_plain(Estimate, {"value": 1.0, "stderr": None, "direction": "exact", "covers": "", "df": None})
    Estimate(value=1.0, stderr=nan, direction='exact', covers='', df=inf)
    """
    hints, values = get_type_hints(kind), {}
    for field in fields(kind):  # pyright: ignore[reportArgumentType]
        key = field.metadata.get("key", field.name)
        if key in content or (field.default is MISSING and field.default_factory is MISSING):
            unknown = field.metadata.get("unknown", math.nan)
            values[field.name] = _taken(hints[field.name], content[key], unknown)
    return kind(**values)


def _taken(kind: Any, content: Any, unknown: Any) -> Any:  # noqa: ANN401
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (kind,) = (each for each in inside if each is not type(None))
        return None if content is None else _taken(kind, content, unknown)
    if kind is float:
        return unknown if content is None else float(content)
    if kind in (int, str, bool):
        return kind(content)
    if origin is np.ndarray:
        # None becomes NaN, a text the number that it spells.
        whole = issubclass(get_args(inside[1])[0], np.integer)
        return np.array(content, np.int64 if whole else np.float64)
    if origin is tuple and inside[1:] == (...,):
        return tuple(_taken(inside[0], each, unknown) for each in content)
    if origin is tuple:
        unknowns = unknown if isinstance(unknown, tuple) else (unknown,) * len(inside)
        return tuple(map(_taken, inside, content, unknowns))
    if origin is dict:
        return {str(name): _taken(inside[1], each, unknown) for name, each in content.items()}
    if origin is Literal:
        if content not in inside:
            raise ValueError(f"{content!r} is none of {inside}")
        return content
    return kind.from_dict(content) if hasattr(kind, "from_dict") else from_plain(kind, content)


def short_repr(self: Any) -> str:  # noqa: ANN401
    """A dataclass with its arrays given by type and shape: `Weights(name='AIS', values=float64(3, 2))`."""
    inside = ", ".join(f"{field.name}={_short(getattr(self, field.name))}" for field in fields(self))
    return f"{type(self).__name__}({inside})"


def fields_html(fields: Mapping[str, str]) -> str:
    """A small table for a notebook."""
    rows = (
        f"<tr><th scope='row'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in fields.items()
    )
    return f"<table style='color: inherit'><tbody>{''.join(rows)}</tbody></table>"


def _short(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))}{',' if len(value) == 1 else ''})"
    return repr(value)
