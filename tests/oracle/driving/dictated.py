"""Run the library's own moves with outcomes chosen beforehand, and learn exactly how probable they are.

The plain NumPy loop draws a unit by comparing uniforms with a probability. Here both sides of that comparison
are replaced: the probability keeps its log odds (1 - p has no digits left when p is near 1), and the uniforms
become outcomes that are dictated and note their own probability. Nothing else of the loop is touched, so every
trajectory can be walked by the very code that is to be proved correct.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing import reference


class LogOdds:
    """A probability (chain, unit) by its log odds: what `expit` returns while outcomes are dictated."""

    def __init__(self, log_odds: NDArray[np.float64]) -> None:
        self.log_odds = log_odds


class Outcomes:
    """Stands where uniforms stood: compared with probabilities it gives the dictated bits (chain, unit)."""

    def __init__(self, bits: NDArray[np.generic], log_prob: NDArray[np.float64]) -> None:
        self.bits = bits.astype(np.bool_)
        self.log_prob = log_prob

    def __array_function__(self, func: Callable[..., Any], _types: Any, args: Any, kwargs: Any) -> "Outcomes":
        if func is not np.concatenate:
            return NotImplemented
        (parts,) = args
        return Outcomes(np.concatenate([part.bits for part in parts], **kwargs), self.log_prob)

    def __le__(self, on: LogOdds) -> NDArray[np.bool_]:
        signed = np.where(self.bits, on.log_odds, -on.log_odds)
        self.log_prob -= np.logaddexp(0.0, -signed).sum(axis=1)
        return self.bits


class Dictation:
    """A `Draw` that hands out outcomes in order and adds up `log_prob` (chain,), the log probability of them all."""

    def __init__(self, bits: NDArray[np.generic]) -> None:
        self.bits = bits
        self.position = 0
        self.log_prob = np.zeros(len(bits))

    def __call__(self, count: int) -> Any:
        part = self.bits[:, self.position : self.position + count]
        assert part.shape[1] == count, "more units were drawn than outcomes were dictated"
        self.position += count
        return Outcomes(part, self.log_prob)


@contextmanager
def dictated() -> Iterator[None]:
    """While this is open, `reference.move` understands `Dictation` (and nothing else)."""
    with mock.patch.object(reference, "expit", LogOdds):
        yield


def product(sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    """Every combination of one number below each size: one array per size, all equally long."""
    return [axis.ravel() for axis in np.indices(sizes)]
