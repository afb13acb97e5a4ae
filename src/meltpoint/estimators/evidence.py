"""Evidence on missed modes: what other starts found, and whether the chosen path reaches it.

N forward chains along the chosen path A have weights w_1, …, w_N, each unbiased for Z. A state x of the model that is
melted back along A has the weight w_rev(x) = Z_0 / exp(log_w_melt), and for x ~ p and N - 1 forward chains

    E[ N / (w_rev(x) + w_2 + … + w_N) ] = 1 / Z                                                    (1)

(the generative model "run N chains, keep one in proportion to its weight" has p_N(x) / f(x) on the left, given x; it
sums to one). With the mean forward weight W and the *reach* of a state

    r(x) = N / (w_rev(x) / W + N - 1),    0 < r <= N / (N - 1),

this reads E[r(x) / W] = 1 / Z: on average the reach is the share W / Z of the model's mass that the N chains have
found. A state in a mode that no chain visits has w_rev >> N W and a reach of 0; where AIS works the reach is 1.

Another start B gives states x_i with weights u_i that are properly weighted: E[u g(x)] = Z E_p[g(x)] for any g. So

    D = mean of u_i (1 - r(x_i)) is unbiased for Z - W (on average over A's chains),

the mass that A lacks, and as a mean of weights it errs low: what B misses too is not in it. A lacks log(1 + D / W)
nats of log Z. Starts that share the space between them (weights outside their own part are 0) may be added up: the
sum over starts of the mean of u_i (1 - r(x_i)) is unbiased for the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from meltpoint.layers.unit import Floats
from meltpoint.records import plain, plain_fields, short_repr
from meltpoint.statistics.certificate import certify_log_z
from meltpoint.statistics.elementary import exp, log_add_exp
from meltpoint.statistics.log_space import log_mean_error, log_mean_exp, log_sum_exp

MODES = "modes"
"""Name of the finding that mean-field modes give together; others have the names of bases."""

_LEAST_MISSED = 0.1  # nats
_MOST_NATS = 300.0
_LEAST_WEIGHTS = 5  # from a mode; as many effective chains must carry log Z for its error to be known
_APART_SIGMAS = 3.0  # standard errors between bases that are not attributed to noise


@dataclass(frozen=True)
class Finding:
    """What one start shows about the chosen path, in units of the mean forward weight W.

    `log_z` is its own estimate with the error `log_z_stderr`, `reach` the mean reach of its states, `lacking` the mass
    D / W that the path lacks according to it, with its standard error, and `rare` the variance that mass which the path
    reaches seldom adds to W / Z: the mean of r (1 - r), for the number of visits to it is close to Poisson.
    `log_weights` (chain,) are those of a base; modes share the space, and have none of their own.
    """

    name: str
    log_z: float = field(metadata={"unknown": -math.inf})
    log_z_stderr: float
    reach: float
    lacking: float
    stderr: float
    rare: float
    log_weights: tuple[float, ...] = field(default=(), repr=False)

    @property
    def nats(self) -> float:
        """How much higher log Z is with what the path lacks."""
        return math.log1p(self.lacking)

    @property
    def least_nats(self) -> float:
        """The same with two standard errors less, on the log scale.

        No estimate of positive weights exceeds its expectation e^2-fold with a probability above e^-2 (Markov), so a
        relative error above 1, which few weights cannot tell anyway, counts as 1.
        """
        if self.lacking <= 0:
            return 0.0
        return math.log1p(self.lacking * math.exp(-2 * min(1.0, self.stderr / self.lacking)))

    @property
    def nats_error(self) -> float:
        """Standard error of `nats`."""
        return self.stderr / (1 + self.lacking)

    def certified(self, confidence: float) -> float:
        """A lower bound on log Z with this confidence; without chains of its own there is none."""
        if not self.log_weights:
            return -math.inf
        return certify_log_z(np.array(self.log_weights), confidence).bound

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """The same as plain values, with the certificate of its log Z at this confidence."""
        numbers = {
            "log_z_certified": self.certified(confidence),
            "missing_nats": self.nats,
            "missing_nats_stderr": self.nats_error,
            "missing_nats_least": self.least_nats,
        }
        return {**plain_fields(self), **plain(numbers)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """What was asked, and what it cost: the number of modes that were tried, chain-steps and seconds.

    `far` of the modes were out of reach of the chosen path, and weighed in groups. The weights of groups with
    `unweighed` modes are too uneven to tell what they hold.
    `log_z_ceiling` is an upper bound on log Z that follows from the parameters alone.
    """

    modes: int = 0
    far: int = 0
    unweighed: int = 0
    chain_steps: int = 0
    seconds: float = field(default=0.0, compare=False)
    log_z_ceiling: float = field(default=math.inf, metadata={"unknown": math.inf})


@dataclass(frozen=True)
class Evidence(Search):
    """What other starts found; with no findings nothing was asked. `weighed` groups of modes gave enough weights."""

    findings: tuple[Finding, ...] = ()
    weighed: int = 0

    @property
    def asked(self) -> bool:
        """Whether any other start was asked."""
        return bool(self.findings)

    @property
    def starts(self) -> int:
        """How many starts gave weights: the chosen base, other bases, and groups of modes."""
        return 1 + sum(finding.name != MODES for finding in self.findings) + self.weighed

    @property
    def _bases(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.log_weights]

    @property
    def strongest(self) -> Finding | None:
        """The finding with the most mass that the chosen path lacks, for an upper limit: each one errs low."""
        return max(self.findings, key=lambda finding: finding.lacking, default=None)

    @property
    def rare(self) -> float:
        """The largest variance that seldom reached mass adds to W / Z."""
        return max((finding.rare for finding in self.findings), default=0.0)

    def missed(self, log_weights: Floats) -> Finding | None:
        """The finding of a missed mode, if one is beyond the noise of the chosen path's log weights (chain,).

        At least 0.1 nats, and two of the path's own standard errors, must be lacking after two standard errors have
        been taken off the finding. Of several it is the one with most left after that: the largest of noisy
        estimates would overstate what is missing.
        """
        beyond = max(_LEAST_MISSED, 2 * float(log_mean_error(log_weights)))
        certain = [finding for finding in self.findings if finding.least_nats > beyond]
        return max(certain, key=lambda finding: finding.least_nats, default=None)

    def larger(self, log_weights: Floats) -> Finding | None:
        """The base whose log Z lies above that of the chosen path's log weights (chain,) by more than noise, if any.

        Each is a lower bound, so only a larger one says that the chosen base has missed something.
        """
        own, error = float(log_mean_exp(log_weights)), float(log_mean_error(log_weights))

        def beyond_noise(finding: Finding) -> bool:
            noise = _APART_SIGMAS * math.hypot(error, finding.log_z_stderr)
            return finding.log_z - own > max(_LEAST_MISSED, noise)

        return max(filter(beyond_noise, self._bases), key=lambda base: base.log_z, default=None)

    def better_base(self, log_weights: Floats) -> Finding | None:
        """The base to start from instead of the one that gave these log weights (chain,), if there is one.

        Its log Z is larger beyond noise; or a mode is missed, and its log Z seems to be larger.
        """
        larger = self.larger(log_weights)
        if larger or not self.missed(log_weights):
            return larger
        best = max(self._bases, key=lambda base: base.log_z, default=None)
        return best if best and best.log_z > float(log_mean_exp(log_weights)) else None

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """The same as plain values; seconds are with those of the report."""
        findings = [finding.to_dict(confidence) for finding in self.findings]
        return {
            **plain_fields(self, without=("seconds", "findings")),
            "findings": findings,
            "starts": self.starts,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Start:
    """Another start: log weights (chain,), each unbiased for Z or for its part of it, and those of its melted states.

    `log_reverse_weights` (state,) are w_rev, along the chosen path, of end states that were drawn by weight. `name` is
    the finding's that it belongs to.
    """

    name: str
    log_weights: Floats
    log_reverse_weights: Floats

    __repr__ = short_repr


@dataclass(frozen=True, eq=False, repr=False)
class Starts(Search):
    """All other starts of an evaluation."""

    starts: tuple[Start, ...] = ()

    __repr__ = short_repr

    @property
    def weighed(self) -> int:
        """How many groups of modes gave enough weights."""
        return sum(start.name == MODES and is_weighed(start.log_weights) for start in self.starts)

    def evidence(self, forward: Floats) -> Evidence:
        """What they say of the path whose log weights (chain,) are `forward`."""
        if len(forward) < 2:
            return Evidence()
        names = dict.fromkeys(start.name for start in self.starts)
        findings = [finding_of(name, [s for s in self.starts if s.name == name], forward) for name in names]
        search = {own.name: getattr(self, own.name) for own in fields(Search)}
        return Evidence(tuple(findings), self.weighed, **search)


def is_weighed(log_weights: Floats) -> bool:
    """Whether enough chains (chain,) ended in a mode for the mean of their weights to have an error."""
    return int(np.isfinite(log_weights).sum()) >= _LEAST_WEIGHTS


def log_reach(forward: Floats, reverse: Floats) -> Floats:
    """log r (state,) of states with reverse log weights (state,) under forward log weights (chain,) of one path.

    >>> log_reach(np.zeros(100), np.array([0.0, np.log(101.0), 50.0])).round(2)
    array([  0.  ,  -0.69, -45.39])
    """
    n = len(forward)
    relative = reverse - log_mean_exp(forward)
    others = np.full_like(relative, math.log(n - 1)) if n > 1 else np.full_like(relative, -np.inf)
    return math.log(n) - log_add_exp(relative, others)


def reach_of(forward: Floats, reverse: Floats) -> Floats:
    """The reach (state,) of the same, 1 at most."""
    return np.minimum(exp(log_reach(forward, reverse)), 1.0)


def finding_of(name: str, starts: Sequence[Start], forward: Floats) -> Finding:
    """What starts that share the space say together."""
    log_z = float(log_mean_exp(forward))
    own_log_z = [float(log_mean_exp(start.log_weights)) for start in starts]
    total = lacking = variance = total_variance = rare = reached = 0.0
    for start, own in zip(starts, own_log_z, strict=True):
        reach = reach_of(forward, start.log_reverse_weights)
        beyond = 1 - reach
        # The square of a larger one would overflow, and says no more.
        mass = math.exp(min(_MOST_NATS, own - log_z))
        relative = float(log_mean_error(start.log_weights))
        unseen = mass * float(beyond.mean())
        noise = mass**2 * float(np.var(beyond, ddof=1)) / len(reach)
        total += mass
        total_variance += (mass * relative) ** 2
        reached += mass * float(reach.mean())
        lacking += unseen
        rare += mass * float((reach * beyond).mean())
        variance += (unseen * relative) ** 2 + noise
    return Finding(
        name=name,
        log_z=float(log_sum_exp(np.array(own_log_z), axis=0)) if own_log_z else -math.inf,
        log_z_stderr=math.sqrt(total_variance) / total if total > 0 else math.nan,
        reach=reached / total if total > 0 else math.nan,
        lacking=lacking,
        stderr=math.sqrt(variance),
        rare=rare,
        log_weights=tuple(map(float, starts[0].log_weights)) if name != MODES and len(starts) == 1 else (),
    )
