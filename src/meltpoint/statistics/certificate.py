"""Bounds that hold for any number of chains and steps, with no assumption on the weights.

An estimator with E[Ẑ] = Z satisfies P(Ẑ >= Z / d) <= d (Markov), so log Z > log Ẑ - log(1/d) with probability at
least 1 - d. `estimators.particles` does the same for probabilities of examples.

For Z the chains are cut into groups whose mean weights Z_1, …, Z_k are independent and unbiased. The products
M_j = (Z_1 / Z) … (Z_j / Z) are a martingale of positive numbers that starts at 1, so P(M_j >= 1/d for any j)
<= d (Ville's inequality, which is Markov's for all j at once), and with probability at least 1 - d

    log Z > (log Z_1 + … + log Z_j - log(1/d)) / j   for every j, hence for the best of them.

The price is log(1/d) / k where the mean of all weights pays log(1/d), and a group loses what its own noise costs
the logarithm. Many groups are best for even weights, few for uneven ones: two numbers of groups share d, and the
better bound counts (P(A or B) <= P(A) + P(B)). Everything is fixed by the number of chains and d alone, before any
weight is seen. The least of k means pays as much as their product and is never larger; other order statistics
(Gogate, Bidyuk and Dechter 2007), with the best order chosen afterwards, are looser too: see
docs/decisions/schedules.md.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meltpoint.arguments import Confidence, read
from meltpoint.records import Record
from meltpoint.statistics.log_space import log_mean_exp

_FEWER = 4
_SHARE_OF_FEW = 0.1  # fraction of d for the bound with a quarter of the groups: it costs log(10) once


@dataclass(frozen=True)
class Certificate(Record):
    """`quantity` > `bound`, with at least the given confidence."""

    bound: float = field(metadata={"unknown": -math.inf})
    confidence: float
    quantity: str

    def __str__(self) -> str:
        certain = np.floor(100 * self.bound) / 100  # rounded down: what is printed is certified too
        return f"{self.quantity} > {certain:.2f} with {100 * self.confidence:.12g}% confidence"


def certify_log_z(log_weights: NDArray[np.floating], confidence: float) -> Certificate:
    """Lower bound on log Z, given the log weights (chain,) of independent chains, each unbiased for Z.

    >>> print(certify_log_z(np.zeros(400), confidence=0.99))
    log Z > -0.11 with 99% confidence
    """
    bounds = [
        _best_product(log_weights, groups, cost_of(confidence) - math.log(share))
        for groups, share in _scales(len(log_weights), confidence)
    ]
    return Certificate(max(bounds), confidence, "log Z")


def _scales(chains: int, confidence: float) -> list[tuple[int, float]]:
    """Numbers of groups, and the share of d that each may spend."""
    # k groups lose v k / (2 n) by the noise of their means and pay log(1/d) / k: equal for v = 2.
    many = min(chains, max(1, round(math.sqrt(chains * cost_of(confidence)))))
    few = many // _FEWER
    return [(many, 1 - _SHARE_OF_FEW), (few, _SHARE_OF_FEW)] if few else [(many, 1.0)]


def _best_product(log_weights: NDArray[np.floating], groups: int, cost: float) -> float:
    """The best bound from the products of the first 1, 2, … group means."""
    size, longer = divmod(len(log_weights), groups)
    parts = np.split(log_weights, [longer * (size + 1)])  # groups with one chain more, and the others
    shapes = (longer, size + 1), (groups - longer, size)
    means = np.concatenate(
        [log_mean_exp(part.reshape(shape)) for part, shape in zip(parts, shapes, strict=True) if part.size]
    )
    return float(np.max((np.cumsum(means) - cost) / np.arange(1, groups + 1)))


def cost_of(confidence: float) -> float:
    """log(1/d): what Markov's inequality costs, in nats, for d = 1 - confidence."""
    return -math.log1p(-read(Confidence, confidence, "confidence"))
