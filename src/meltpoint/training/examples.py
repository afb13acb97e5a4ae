"""Training examples: checked once, then shuffled (and, when grey, drawn anew) every epoch."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError
from meltpoint.models import checks
from meltpoint.training.draws import draw, stream

_SHUFFLE, _GREY = 0, 1


@dataclass(frozen=True)
class Examples:
    """Rows of uint8 bits, or of float32 probabilities from which bits are drawn anew in every epoch."""

    rows: NDArray[np.generic]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        """Number of visible units."""
        return self.rows.shape[1]

    def rates(self) -> NDArray[np.float64]:
        """How often each visible unit is on (unit,), smoothed by one example on and one off."""
        return (self.rows.sum(axis=0, dtype=np.float64) + 1.0) / (len(self.rows) + 2.0)

    def batches(self, seed: int, stage: int, epoch: int, size: int) -> Iterator[NDArray[np.uint8]]:
        """Zeros and ones (example, unit), every example once, in an order fixed by (seed, epoch)."""
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stage, epoch, _SHUFFLE)))
        grey_stream = stream(seed, stage, epoch, _GREY)
        order = generator.permutation(len(self.rows))
        for chosen in np.array_split(order, max(1, len(order) // size)):
            rows = self.rows[chosen]
            batch = rows.astype(np.uint8)
            if rows.dtype != np.uint8:
                draw(rows, grey_stream, batch)
            yield batch


def checked(data: ArrayLike, name: str) -> Examples:
    """Examples from zeros and ones, or from real grey values in [0, 1]."""
    array = np.asarray(data)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            found=f"{name} of shape {array.shape}",
            expected="(examples, units), neither of them 0",
            remedy=f"flatten each example: {name}.reshape(len({name}), -1)",
        )
    if np.issubdtype(array.dtype, np.floating) and array.min() >= 0 and array.max() <= 1:
        bits = ((array == 0) | (array == 1)).all()
        return Examples(array.astype(np.uint8 if bits else np.float32))
    return Examples(checks.to_bits(array, name))
