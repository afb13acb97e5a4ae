"""Examples and samples to look at: the few that a report keeps, as pictures or as texts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.data.picture import mosaic
from meltpoint.layers.unit import Floats
from meltpoint.records import short_repr

_MOST = 16  # examples, and samples
_WORST = 8
_MOST_VALUES = 16_000  # of all samples together, so that a report stays small
_LEAST = 4
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LEAST_SIDE = 5
_MOST_NUMBERS = 24


@dataclass(frozen=True, eq=False, repr=False)
class ShownStates:
    """States (example, visible unit) of test examples at these positions (example,), and of samples of the model.

    Whole numbers from 0 on, or real ones, of units of this name. Without samples these have no rows.
    """

    unit: str
    positions: NDArray[np.integer]
    states: NDArray[Any]
    samples: NDArray[Any] = field(default_factory=lambda: np.zeros((0, 0), np.uint8))

    __repr__ = short_repr

    def state_of(self, position: int) -> NDArray[Any] | None:
        """The state (visible unit,) of the test example at this position, None if it is not shown."""
        found = np.flatnonzero(self.positions == position)
        return self.states[found[0]] if len(found) else None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values: a text with one digit (0 to 9, a to z) for each state, or numbers."""
        rows = {"states": self.states, "samples": self.samples}
        texts = {
            name: [digits_of(state) or state.astype(float).tolist() for state in each]
            for name, each in rows.items()
        }
        return {"unit": self.unit, "positions": self.positions.tolist(), **texts}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "ShownStates":
        """The inverse of `to_dict`."""
        positions = np.array(content["positions"], np.int64)
        return cls(
            str(content["unit"]), positions, *map(_from_plain, (content["states"], content["samples"]))
        )


def sample_count(visible: int) -> int:
    """How many samples of a model with this number of visible units are shown: 16, fewer of large ones, or none."""
    count = min(_MOST, _MOST_VALUES // visible)
    return count if count >= _LEAST else 0


def choose_shown(
    unit: str, positions: NDArray[np.integer], states: NDArray[Any], differences: Floats
) -> ShownStates | None:
    """The first of these examples and those with the largest differences (example,); None of very large ones."""
    count = sample_count(states.shape[1])
    if not count:
        return None
    chosen = dict.fromkeys([*range(min(count, len(states))), *worst(differences)[: min(count, _WORST)]])
    rows = list(chosen)
    return ShownStates(unit, positions[rows], states[rows])


def worst(differences: Floats) -> list[int]:
    """Numbers of examples in the order of the size of their differences (example,), the largest first."""
    return np.argsort(-np.abs(np.nan_to_num(differences)), kind="stable").tolist()


def digits_of(state: NDArray[Any]) -> str | None:
    """States (unit,) of one example as a digit each, 0 to 9 and a to z; None where they are not states or too many."""
    if np.issubdtype(state.dtype, np.integer) and state.max(initial=0) < len(_DIGITS):
        return "".join(_DIGITS[value] for value in state.tolist())
    return None


def image_side(visible: int) -> int | None:
    """Side of the square picture that a number of units makes (28 of 784), None if they make no square."""
    side = math.isqrt(visible)
    return side if side * side == visible and side >= _LEAST_SIDE else None


def tiled(states: NDArray[Any]) -> NDArray[np.uint8]:
    """Squares (example, unit) as one grey picture (row, column): the largest state is black, lines stand between."""
    side = math.isqrt(states.shape[1])
    picture = mosaic(states, (side, side))
    return picture[1:-1, 1:-1] if len(states) == 1 else picture


def as_text(state: NDArray[Any]) -> str:
    """One example as a digit for each state (0 to 9, a to z), or the first of many numbers."""
    text = digits_of(state)
    if text is not None:
        return text
    shown = ", ".join(f"{value:.3g}" for value in state[:_MOST_NUMBERS].tolist())
    return shown + (", …" if len(state) > _MOST_NUMBERS else "")


def _from_plain(rows: Sequence[Any]) -> NDArray[Any]:
    if not rows:
        return np.zeros((0, 0), np.uint8)
    if isinstance(rows[0], str):
        return np.array([[_DIGITS.index(digit) for digit in row] for row in rows], np.uint8)
    return np.array(rows, np.float64)
