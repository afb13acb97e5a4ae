"""Examples of a training: checked once, and drawn anew in every epoch where they are grey."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError
from meltpoint.kernels.bit_products import State
from meltpoint.layers import BERNOULLI, Unit, fitted_unit
from meltpoint.models import checks

Chosen: TypeAlias = NDArray[np.integer] | slice


@dataclass(frozen=True)
class Examples:
    """States (example, unit) of visible units, or the rates from which they are drawn in every epoch."""

    rows: NDArray[Any]
    visible: Unit = BERNOULLI
    are_rates: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_visible(self) -> int:
        return self.rows.shape[1]

    @property
    def width(self) -> int:
        """Numbers in the visible layer."""
        return self.visible.statistics(self.rows[:1]).shape[1]

    def states(self, chosen: Chosen, stream: NDArray[np.uint32]) -> NDArray[Any]:
        """States (chosen example, unit), drawn if there are only rates."""
        rows = self.rows[chosen]
        return self.visible.draw_statistics(rows, (), stream) if self.are_rates else rows

    def layer(self, chosen: Chosen, stream: NDArray[np.uint32]) -> State:
        """The visible layer (chosen example, number): the statistics of states."""
        return self.visible.statistics(self.states(chosen, stream))

    def values(self, chosen: Chosen, stream: NDArray[np.uint32]) -> NDArray[Any]:
        """Examples (chosen example, unit) as the model takes them."""
        return self.visible.decode(self.states(chosen, stream))


def check_examples(
    data: ArrayLike, name: str, kind: str | Unit = "bernoulli", like: Examples | None = None
) -> Examples:
    """Examples of a kind of visible unit: zeros and ones (or grey values in [0, 1]), spins, states, real numbers.

    Held-out examples are `like` those of the training.
    """
    array = checks.as_array(data, name)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            found=f"{name} of shape {array.shape}",
            expected="(examples, units), neither of them 0",
            remedy=f"flatten each example: {name}.reshape(len({name}), -1)",
        )
    if like is not None and array.shape[1] != like.n_visible:
        raise InputError(
            found=f"{name} with {array.shape[1]} columns",
            expected=f"{like.n_visible}, as in the training data",
            remedy="is the label column still in one of them?",
        )
    visible = fitted_unit(kind, array, name) if like is None else like.visible
    if visible.takes_rates and is_grey(array):
        return Examples(array.astype(np.float32, copy=False), visible, are_rates=True)
    return Examples(visible.encode(array, name), visible)


def is_grey(array: NDArray[Any]) -> bool:
    """Whether values are from 0 to 1 and some of them between."""
    return (
        np.issubdtype(array.dtype, np.floating)
        and bool(array.min() >= 0 and array.max() <= 1)
        and bool(((array != 0) & (array != 1)).any())
    )
