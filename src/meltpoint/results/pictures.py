"""Examples as pictures, or as texts where they are not squares."""

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.data.picture import side_by_side, to_png
from meltpoint.results.shown import digits_of

_LEAST_SIDE = 5
_PAPER, _LINE = 255, 170
_MOST_NUMBERS = 24


def image_side(visible: int) -> int | None:
    """Side of the square picture that a number of units makes, None if they make no square.

    >>> image_side(784), image_side(9), image_side(785)
    (28, None, None)
    """
    side = math.isqrt(visible)
    return side if side * side == visible and side >= _LEAST_SIDE else None


def tiled(states: NDArray[Any]) -> NDArray[np.uint8]:
    """Squares (example, unit) as one grey picture (row, column): the largest state is black, lines stand between."""
    values = np.asarray(states, np.float64)
    low, high = float(values.min(initial=0.0)), float(values.max(initial=1.0))
    grey = np.round(_PAPER * (1 - (values - low) / ((high - low) or 1.0))).astype(np.uint8)
    side = math.isqrt(states.shape[1])
    tiles = grey.reshape(-1, side, side)
    return tiles[0] if len(tiles) == 1 else side_by_side(tiles, _LINE)


def png_address(pixels: NDArray[np.uint8]) -> str:
    """A grey picture (row, column) as a data address."""
    return "data:image/png;base64," + base64.b64encode(to_png(pixels)).decode()


def as_text(state: NDArray[Any]) -> str:
    """One example as a digit for each state (0 to 9, a to z), or the first of many numbers."""
    text = digits_of(state)
    if text is not None:
        return text
    shown = ", ".join(f"{value:.3g}" for value in state[:_MOST_NUMBERS].tolist())
    return shown + (", …" if len(state) > _MOST_NUMBERS else "")
