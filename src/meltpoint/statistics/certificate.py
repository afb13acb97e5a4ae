"""Bounds that hold for any number of chains and steps, with no assumption on the weights.

An estimator with E[p̂] = p satisfies P(p̂ >= p / d) <= d (Markov). The estimates of different examples are
independent, so their product is unbiased for the product of the probabilities, and the price log(1/d) is paid
once for all of them together.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from meltpoint.errors import InputError
from meltpoint.statistics.estimate import finite_or_none


@dataclass(frozen=True)
class Certificate:
    """`quantity` > `bound`, with at least the given confidence."""

    bound: float
    confidence: float
    quantity: str

    def __str__(self) -> str:
        certain = np.floor(100 * self.bound) / 100  # rounded down: what is printed is certified too
        return f"{self.quantity} > {certain:.2f} with {100 * self.confidence:.12g}% confidence"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain numbers and strings; a bound that is not a number is None."""
        return {"bound": finite_or_none(self.bound), "confidence": self.confidence, "quantity": self.quantity}


def certify_mean_log_prob(mean: float, examples: int, confidence: float) -> Certificate:
    """Lower bound on the mean of log p_ann over the examples RAISE was run for, given the mean estimate.

    >>> print(certify_mean_log_prob(-86.5, examples=100, confidence=0.99))
    mean log p_ann of these 100 examples > -86.55 with 99% confidence
    """
    cost = _cost(confidence) / examples
    return Certificate(mean - cost, confidence, f"mean log p_ann of these {examples} examples")


def certify_log_z(log_z: float, confidence: float) -> Certificate:
    """Lower bound on log Z, given the logarithm of an unbiased estimate of Z."""
    return Certificate(log_z - _cost(confidence), confidence, "log Z")


def check_confidence(confidence: float) -> float:
    """A probability between 0 and 1, or an error."""
    if not 0 < confidence < 1:
        raise InputError(
            found=f"confidence {confidence!r}",
            expected="a probability between 0 and 1",
            remedy="0.99 is usual",
        )
    return confidence


def _cost(confidence: float) -> float:
    return -math.log1p(-check_confidence(confidence))
