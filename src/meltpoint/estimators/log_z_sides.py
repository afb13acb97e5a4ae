"""log Z from both sides along one path: forward chains below, states of the model melted back above.

With N forward weights of mean W, and states x of the model melted back along the same path, the reach r(x) of a state
has E[r(x) / W] = 1 / Z (estimators/evidence.py, equation 1). So log W errs low, and

    log W - log(mean reach)

errs high, both by Jensen's inequality, and they differ by what the chains do not reach. The states are exact samples
where elimination gives them; then nothing is assumed. Otherwise they are end states of other chains from all starts,
drawn in proportion to their weights: samples as far as no start missed a mode.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from meltpoint.estimators.evidence import MODES, Evidence, Finding, Start, Starts, log_reach, reach_of
from meltpoint.estimators.limits import LEAST_CHAINS, log_z_limits, widened
from meltpoint.layers.unit import Floats
from meltpoint.records import short_repr
from meltpoint.statistics.certificate import certify_log_z
from meltpoint.statistics.elementary import exp
from meltpoint.statistics.estimate import Estimate
from meltpoint.statistics.log_space import effective_sample_size, log_mean_error, log_mean_exp
from meltpoint.statistics.special import stdtrit

EXACT_SAMPLES = "exact samples"
"""Name of the finding that melted exact samples give."""

_MOST_LACKING = math.exp(300.0)


@dataclass(frozen=True, eq=False, repr=False)
class Sides:
    """Log weights (chain,) of the forward chains, other starts with their melted states, and exact samples' weights.

    `exact_reverse` (state,) are log w_rev of exact samples, None where there are none.
    """

    forward: Floats
    starts: Starts = field(default_factory=Starts)
    exact_reverse: Floats | None = None

    __repr__ = short_repr

    @property
    def has_upper(self) -> bool:
        """Whether any states were melted back, so that there is an upper side."""
        return len(self.forward) >= LEAST_CHAINS and (self.exact_reverse is not None or bool(self._bases))

    @property
    def melted(self) -> Floats:
        """Reverse log weights (state,) that the upper side is made of."""
        if self.exact_reverse is not None:
            return self.exact_reverse
        return np.concatenate([np.zeros(0), *(start.log_reverse_weights for start in self._bases)])

    @property
    def n_starts(self) -> int:
        """Bases from which chains were started, and modes that gave weights."""
        return max(1, len({start.name for start in self._bases})) + self.starts.weighed

    @cached_property
    def upper(self) -> Estimate:
        """log W - log(mean reach), which errs high as far as the states are samples of the model."""
        log_w = float(log_mean_exp(self.forward))
        if not self.has_upper:
            return Estimate(math.inf, math.nan, "upper bound", "nothing: no states were melted back")
        if self.exact_reverse is not None:
            parts = [(0.0, self.exact_reverse)]
        else:
            parts = [(_log_sum(start.log_weights), start.log_reverse_weights) for start in self._bases]
        shares = np.array([mass for mass, _ in parts])
        shares = exp(shares - _log_sum(shares))
        reaches = [exp(log_reach(self.forward, reverse)) for _, reverse in parts]
        reach = float(sum(share * r.mean() for share, r in zip(shares, reaches, strict=True)))
        noise = math.sqrt(sum((share * _error(r)) ** 2 for share, r in zip(shares, reaches, strict=True)))
        if not reach > 0:
            return Estimate(math.inf, math.nan, "upper bound", "nothing: no melted state is in reach")
        melted = int(sum(len(r) for r in reaches))
        return Estimate(
            log_w - math.log(reach),
            math.hypot(noise / reach, float(log_mean_error(self.forward))),
            "upper bound",
            "the noise of the forward chains and of the melted states; not what all starts have missed",
            df=max(1.0, min(melted, float(effective_sample_size(self.forward))) - 1),
        )

    @cached_property
    def evidence(self) -> Evidence:
        """What other starts and exact samples say of the forward chains."""
        found = self.starts.evidence(self.forward)
        if self.exact_reverse is None or len(self.forward) < LEAST_CHAINS:
            return found
        return replace(found, findings=(*found.findings, _exact_finding(self.forward, self.exact_reverse)))

    def between(self, alpha: float) -> tuple[float, float]:
        """An interval for log Z that misses it with probability alpha, if no start missed a mode.

        `log_z_limits` makes it from the forward chains and from what other starts found. Where these found mass out of
        reach, the upper limits that their own weights give count too: Z is known no better than from them. With exact
        samples the upper end is that of W / (mean reach), or the certified bound if that is lower.
        """
        evidence, upper = self.evidence, self.upper
        low, high = log_z_limits(self.forward, evidence, alpha)
        if not (self.has_upper and math.isfinite(upper.value)):
            return low, math.inf
        high = max(high, upper.value)
        if self.exact_reverse is not None:
            reach = reach_of(self.forward, self.exact_reverse)
            part = -float(stdtrit(len(reach) - 1, alpha / 4)) * _error(reach) / float(reach.mean())
            high = max(high, upper.value + widened(part))
            return low, max(low, min(high, self.certified_upper(alpha / 4) or high))
        if evidence.missed(self.forward) or evidence.larger(self.forward):
            own = [log_z_limits(start.log_weights, Evidence(), alpha)[1] for start in self._bases]
            high = max(high, *own)
        return low, high

    def certified_upper(self, alpha: float) -> float | None:
        """A bound that log Z exceeds with probability alpha at most, whatever was missed; exact samples only.

        Each sample has forward chains of its own, so that the estimates of 1 / Z are independent, and unbiased.
        """
        if self.exact_reverse is None:
            return None
        return -certify_log_z(inverse_log_z(self.forward, self.exact_reverse), 1 - alpha).bound

    @property
    def _bases(self) -> Sequence[Start]:
        return [start for start in self.starts.starts if start.name != MODES]


def inverse_log_z(forward: Floats, reverse: Floats) -> Floats:
    """Logarithms (state,) of independent unbiased estimates of 1 / Z from exact samples' reverse log weights (state,).

    Forward log weights (chain,) are dealt out in equal numbers; what is left over is not used.

    >>> inverse_log_z(np.log([2.0, 2.0, 3.0, 3.0]), np.log([2.0, 3.0])).round(2)
    array([-0.69, -1.1 ])
    """
    own = len(forward) // len(reverse)
    groups = forward[: own * len(reverse)].reshape(len(reverse), own)
    return -log_mean_exp(np.column_stack([reverse, groups]))


def _exact_finding(forward: Floats, reverse: Floats) -> Finding:
    """What exact samples say: Z = W / (mean reach), without any weights of their own."""
    reach = reach_of(forward, reverse)
    mean = max(float(reach.mean()), 1 / _MOST_LACKING)
    return Finding(
        name=EXACT_SAMPLES,
        log_z=float(log_mean_exp(forward)) - math.log(mean),
        log_z_stderr=_error(reach) / mean,
        reach=mean,
        lacking=1 / mean - 1,
        stderr=min(_MOST_LACKING, _error(reach) / mean**2),
        rare=float((reach * (1 - reach)).mean()) / mean,
    )


def _log_sum(log_weights: Floats) -> float:
    return float(log_mean_exp(log_weights)) + math.log(len(log_weights))


def _error(values: Floats) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf
