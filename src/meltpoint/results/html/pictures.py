"""Examples as pictures, or as texts where they are not squares: PNG in data addresses."""

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.datasets.picture import side_by_side, to_png
from meltpoint.results.html.elements import Html, element, void
from meltpoint.results.shown import digits_of

_LEAST_SIDE = 5
_PAPER, _LINE = 255, 170
_MOST_NUMBERS = 24


def image_side(visible: int) -> int | None:
    """Side of the square picture that so many units make, None if they make none.

    >>> image_side(784), image_side(9), image_side(785)
    (28, None, None)
    """
    side = math.isqrt(visible)
    return side if side * side == visible and side >= _LEAST_SIDE else None


def grey(states: NDArray[Any]) -> NDArray[np.uint8]:
    """Grey values (example, unit), ink on paper: the largest state is black."""
    values = np.asarray(states, np.float64)
    low, high = float(values.min(initial=0.0)), float(values.max(initial=1.0))
    return np.round(_PAPER * (1 - (values - low) / ((high - low) or 1.0))).astype(np.uint8)


def picture(state: NDArray[Any], alt: str) -> Html:
    """One example as a square picture."""
    side = image_side(len(state))
    assert side is not None, "the caller has asked"
    return void("img", src=_png_address(grey(state).reshape(side, side)), alt=alt, width=side, height=side)


def mosaic(states: NDArray[Any], alt: str) -> Html:
    """Examples (example, unit) as square pictures side by side, in rows that make the whole nearly square."""
    side = image_side(states.shape[1])
    assert side is not None, "the caller has asked"
    whole = side_by_side(grey(states).reshape(-1, side, side), _LINE)
    height, width = whole.shape
    return void("img", src=_png_address(whole), alt=alt, width=width, height=height, class_="mosaic")


def as_text(state: NDArray[Any]) -> Html:
    """One example as a text: a digit for each state (0 to 9, a to z), or the first of many numbers."""
    text = digits_of(state)
    if text is not None:
        return element("code", text, class_="states")
    shown = ", ".join(f"{value:.3g}" for value in state[:_MOST_NUMBERS].tolist())
    return element("code", shown + (", …" if len(state) > _MOST_NUMBERS else ""))


def texts(states: Sequence[NDArray[Any]] | NDArray[Any]) -> Html:
    """Examples as a list of texts."""
    items = [element("li", as_text(state)) for state in states]
    return element("ul", *items, class_="gallery sequences")


def _png_address(pixels: NDArray[np.uint8]) -> str:
    """A grey picture (row, column) as a data address."""
    return "data:image/png;base64," + base64.b64encode(to_png(pixels)).decode()
