"""Training examples: checked once, then shuffled (and, when grey, drawn anew) in every epoch."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError
from meltpoint.models import checks
from meltpoint.training.draws import draw


@dataclass(frozen=True)
class Examples:
    """Rows of uint8 zeros and ones, or of float32 probabilities from which they are drawn when asked for."""

    rows: NDArray[np.uint8] | NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        """Number of visible units."""
        return self.rows.shape[1]

    @property
    def rates(self) -> NDArray[np.float64]:
        """How often each visible unit is on (unit,), smoothed by one example on and one off."""
        return (self.rows.sum(axis=0, dtype=np.float64) + 1.0) / (len(self) + 2.0)

    def bits(self, chosen: NDArray[np.integer] | slice, stream: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Zeros and ones (chosen example, unit)."""
        rows = self.rows[chosen]
        bits = rows.astype(np.uint8)
        if rows.dtype != np.uint8:
            draw(rows, stream, bits)
        return bits


def shuffled(n: int, size: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """Which examples are in each batch of one epoch: every example once, `size` or slightly more in each."""
    return np.array_split(generator.permutation(n), max(1, n // size))


def checked(data: ArrayLike, name: str, width: int | None = None) -> Examples:
    """Examples from zeros and ones, or from real grey values in [0, 1]."""
    array = np.asarray(data)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            found=f"{name} of shape {array.shape}",
            expected="(examples, units), neither of them 0",
            remedy=f"flatten each example: {name}.reshape(len({name}), -1)",
        )
    if width is not None and array.shape[1] != width:
        raise InputError(
            found=f"{name} with {array.shape[1]} columns",
            expected=f"{width}, as in the training data",
            remedy="is the label column still in one of them?",
        )
    if np.issubdtype(array.dtype, np.floating) and array.min() >= 0 and array.max() <= 1:
        grey = ((array != 0) & (array != 1)).any()
        return Examples(array.astype(np.float32, copy=False) if grey else array.astype(np.uint8))
    return Examples(checks.to_bits(array, name))
