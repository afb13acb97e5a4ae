"""N particles: how the forward chains of AIS take part in RAISE.

"Run N AIS chains, keep one of them in proportion to its weight, move once more" is a generative model, p_N. The kept
chain's density times its weight is f(v) times the density of the reversed moves, and the choice contributes N over the
sum of all weights. So with w_rev the weight of the path that v was melted along, and S the sum of N - 1 forward
weights,

    p_N(v) = f(v) E[ N / (w_rev + S) ] = E[ raise_weight N w_rev / (w_rev + S) ],

where raise_weight is RAISE's own unbiased estimate of p_1(v). docs/raise-n.md has the derivation.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.errors import InputError
from meltpoint.layers.unit import Floats
from meltpoint.models.checks import real_array
from meltpoint.records import fields_html
from meltpoint.statistics.certificate import Certificate, cost_of
from meltpoint.statistics.elementary import expit, log, softmax, softplus
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp, log_sum_exp

_ENOUGH_GROUPS = 5
"""Fewest groups of forward chains whose differences give the error of their mean."""


@dataclass(frozen=True, eq=False, repr=False)
class LogProb:
    """Conservative estimates of log p_N(v) (example,), with standard errors, from log weights (example, chain).

    `particles` is N; N = 1 is the paper's estimator. exp(log_weights) is unbiased for p_N(v). `stderrs`
    cover the noise of an example's own chains; `forward_shares` (example, group) tell how much of a relative error of
    each group's sum of forward weights reaches the value, with a minus sign: forward chains are shared by all examples.
    `forward_stderrs` (group,) are the relative standard errors of those sums. From five groups on
    `group_parts` (example, group) say what each adds to the value, to first order: its part of the mean weight, less
    that of an average group. The few chains of a small group hardly tell their own error.
    """

    values: Floats
    stderrs: Floats
    log_weights: Floats
    particles: int = 1
    forward_shares: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    forward_stderrs: Floats = field(default_factory=lambda: np.zeros(0))
    group_parts: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def __repr__(self) -> str:
        examples, chains = self.log_weights.shape
        mean = float(np.mean(self.values))
        return (
            f"LogProb(mean {mean:.4f} of {examples:,} examples × {chains:,} chains, N = {self.particles:,})"
        )

    def _repr_html_(self) -> str:
        examples, chains = self.log_weights.shape
        return fields_html(
            {
                "mean log p_N(v)": f"{float(np.mean(self.values)):.4f} nats",
                "from … to": f"{float(np.min(self.values)):.2f} … {float(np.max(self.values)):.2f}",
                "examples × chains": f"{examples:,} × {chains:,}",
                "particles N": f"{self.particles:,}",
            }
        )


class Melted(NamedTuple):
    """RAISE's log weights and log reverse weights (example, chain): see `RaiseWeights`."""

    log_weights: Floats
    log_reverse_weights: Floats


def check_forward(forward: ArrayLike | None, particles: int | None) -> Floats:
    """Log weights (chain,) of forward chains, none without any, or an error if there are too few for N."""
    log_weights = np.zeros(0) if forward is None else real_array(forward, "forward")
    if log_weights.ndim != 1 or np.isnan(log_weights).any():
        raise InputError(
            found=f"forward log weights of shape {log_weights.shape}"
            + (" with NaN" if np.isnan(log_weights).any() else ""),
            expected="a vector, one number for each forward chain",
            remedy="pass what ais_log_z gives, or its log_weights",
        )
    if particles is not None and particles - 1 > len(log_weights):
        raise InputError(
            found=f"particles={particles:,} with {len(log_weights):,} forward chains",
            expected=f"at most {len(log_weights) + 1:,}: each particle but the example's own is a forward chain",
            remedy="run more AIS chains, or leave particles out",
        )
    return log_weights


def particle_log_prob(
    log_weights: Floats, log_reverse_weights: Floats, forward: Floats, particles: int | None = None
) -> LogProb:
    """Estimates of log p_N(v) from RAISE's weights (example, chain) and forward log weights (chain,).

    With w_rev the reverse weight and S the sum of N - 1 forward weights,

        p_N(v) = E[ exp(log_weight) N w_rev / (w_rev + S) ].

    Where there are more forward chains than N - 1, they form as many whole groups as they can, and the estimate is the
    mean over groups, which is unbiased too.
    """
    n = len(forward) + 1 if particles is None else particles
    if n == 1:
        return LogProb(
            log_mean_exp(log_weights),
            log_mean_error(log_weights),
            log_weights,
            forward_shares=np.zeros((len(log_weights), 0)),
        )
    groups = forward[: len(forward) // (n - 1) * (n - 1)].reshape(-1, n - 1)
    # The odds of S to w_rev may be infinite on either side.
    odds = log_sum_exp(groups, axis=1) - log_reverse_weights[:, :, np.newaxis]
    terms = log_weights[:, :, np.newaxis] + log(n) - softplus(odds)
    per_chain = log_mean_exp(terms)
    parts: Any = softmax(terms, axis=(1, 2))
    return LogProb(
        log_mean_exp(per_chain),
        log_mean_error(per_chain),
        per_chain,
        n,
        (parts * expit(odds)).sum(axis=1),
        np.asarray(log_mean_error(groups)),
        parts.sum(axis=1) - 1 / len(groups) if len(groups) >= _ENOUGH_GROUPS else np.zeros((0, 0)),
    )


_SCALES = ((1, 0.6), (4, 0.2), (16, 0.2))
"""Examples that share forward chains in a certificate, and the part of 1 - confidence that each size may spend."""


def certify_mean_log_prob(
    log_weights: Floats, log_reverse_weights: Floats, forward: Floats, confidence: float
) -> tuple[Certificate, float]:
    """Lower bound on the mean of log p_N over these examples, and the estimate that it was made from.

    Cut the examples into G groups, and the forward chains into as many, so that no two groups share a chain. Within a
    group of k examples Hoelder's inequality gives E[(p^_1 … p^_k)^(1/k)] <= (p_N(v_1) … p_N(v_k))^(1/k), however the
    estimates depend on each other; groups are independent, so the product over groups is at most the product of
    these on average, and by Markov's inequality, with probability at least 1 - d,

        mean log p_N > mean log p^ - log(1/d) / G,   N = 1 + (number of forward chains) // G

    (groups of unequal size enter with exponents of at most 1, by Jensen's inequality: 1/G becomes the largest
    group's part of the examples). Groups of one example pay least, larger ones have more particles. Three sizes share
    d; the largest bound counts. Without forward chains N is 1 and the groups are single examples. Everything is fixed
    by the numbers of examples and chains before any weight is seen.
    """
    examples = len(log_weights)
    found: list[tuple[float, float, int]] = []
    for size, share in _SCALES if len(forward) else ((1, 1.0),):
        groups = max(1, examples // size)
        chains = len(forward) // groups
        terms = log_weights
        if chains:
            sums = log_sum_exp(forward[: groups * chains].reshape(groups, chains), axis=1)
            sizes = [len(members) for members in np.array_split(np.arange(examples), groups)]
            odds = np.repeat(sums, sizes)[:, np.newaxis] - log_reverse_weights
            terms = log_weights + log(chains + 1) - softplus(odds)
        mean = float(np.mean(log_mean_exp(terms)))
        largest = -(-examples // groups) / examples
        found.append((mean - (cost_of(confidence) - math.log(share)) * largest, mean, chains + 1))
    bound, mean, particles = max(found)
    what = "log p_ann" if particles == 1 else f"log p_N, N = {particles:,},"
    return Certificate(bound, confidence, f"mean {what} of these {examples:,} examples"), mean
