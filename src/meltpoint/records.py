"""How frozen records that hold arrays print themselves."""

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


def _short(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))}{',' if len(value) == 1 else ''})"
    return repr(value)
