"""How frozen records that hold arrays print themselves, in a terminal and in a notebook."""

import html
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np


def short_repr(self: Any) -> str:  # noqa: ANN401
    """A dataclass with its arrays given by type and shape.

    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Weights:
    ...     name: str
    ...     values: np.ndarray
    ...     __repr__ = short_repr
    >>> Weights("AIS", np.zeros((3, 2)))
    Weights(name='AIS', values=float64(3, 2))
    """
    inside = ", ".join(f"{field.name}={_short(getattr(self, field.name))}" for field in fields(self))
    return f"{type(self).__name__}({inside})"


def fields_html(fields: Mapping[str, str]) -> str:
    """A small table for a notebook.

    >>> fields_html({"log Z": "451.28 < 452"})
    "<table style='color: inherit'><tbody><tr><th scope='row'>log Z</th><td>451.28 &lt; 452</td></tr></tbody></table>"
    """
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
