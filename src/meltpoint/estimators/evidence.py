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
nats of log Z. Starts that share the space between them (`shares`, non-negative and summing to one at every state) may
be added up: the sum over starts of the mean of u_i share(x_i) (1 - r(x_i)) is unbiased for the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from meltpoint.annealing.anneal import Leg, anneal
from meltpoint.annealing.base import Base, family_of
from meltpoint.annealing.streams import chain_generators
from meltpoint.errors import Progress
from meltpoint.estimators.modes import Modes, find_modes, mode_bases, nearest_mode
from meltpoint.models import Model
from meltpoint.models.checks import Bits, Floats
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.log_space import effective_sample_size, log_mean_error, log_mean_exp

_PURPOSE = Purpose.PILOT  # with keys of four numbers, which the pilot does not use
_FORWARD, _MELT, _CHOICE, _LOOK = 1000, 1001, 1002, 1004
_MOVES = 5  # at beta 1, after annealing
_MODE_MOVES = 10  # at beta 1, from a draw of a mode's rates
_FAR_MODES = 8  # from which chains are annealed at most
_MODE_CHAINS = 24
_MODE_MELTED = 6
_LOOKS = 2  # states of a mode that are melted before chains are annealed from it
_MATTERS = 1e-3  # share of Z out of reach that is worth the chains
_MODE_STEPS = 50, 1000
_REACHED = 0.9  # reach from which on a mode need not be asked
_HOPELESS = 20.0  # nats that a mode's bound may lie below the estimate of log Z: bounds are far from tight
_LEAST_MISSED = 0.1  # nats


@dataclass(frozen=True, eq=False)
class Start:
    """Chains annealed from one base: log weights (chain,), each unbiased for Z, and end states (chain, even unit)."""

    base: Base
    log_weights: Floats
    states: Bits

    @property
    def log_z(self) -> float:
        """The estimate of log Z: a stochastic lower bound."""
        return float(log_mean_exp(self.log_weights))

    @property
    def ess(self) -> float:
        """Effective sample size."""
        return float(effective_sample_size(self.log_weights))


def run_start(
    model: Model,
    base: Base,
    betas: Floats,
    chains: int,
    *,
    number: int,
    seed: int = 0,
    moves: int = _MOVES,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Start:
    """Anneal chains from a base and make some moves at beta 1, which leaves them properly weighted.

    `number` tells starts apart: no two may share random numbers.
    """
    family = family_of(model, base)
    run = anneal(
        family,
        [Leg(betas), Leg(np.ones(moves + 1))],
        np.zeros((chains, family.target.n_even), np.uint8),
        chain_generators(seed, _PURPOSE, _keys(_FORWARD, number, chains)),
        threads=threads,
        progress=progress,
        task="other starts",
    )
    if not run.finished.all():
        raise KeyboardInterrupt
    return Start(base, run.log_weights + family.log_z_base, run.state)


def reverse_log_weights(
    model: Model,
    base: Base,
    betas: Floats,
    states: Bits,
    *,
    number: int,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Floats:
    """log w_rev (state,) of states (state, even unit) melted back along the path from a base, one chain each."""
    family = family_of(model, base)
    run = anneal(
        family,
        [Leg(betas[::-1].copy())],
        states,
        chain_generators(seed, _PURPOSE, _keys(_MELT, number, len(states))),
        threads=threads,
        progress=progress,
        task="melting other starts",
    )
    if not run.finished.all():
        raise KeyboardInterrupt
    return family.log_z_base - run.log_weights


def log_reach(forward: Floats, reverse: Floats) -> Floats:
    """log r (state,) of states with reverse log weights (state,) under forward log weights (chain,) of one path.

    >>> log_reach(np.zeros(100), np.array([0.0, np.log(101.0), 50.0])).round(2)
    array([  0.  ,  -0.69, -45.39])
    """
    n = len(forward)
    relative = reverse - log_mean_exp(forward)
    others = np.full_like(relative, math.log(n - 1)) if n > 1 else np.full_like(relative, -np.inf)
    return math.log(n) - np.logaddexp(relative, others)


def choose_by_weight(log_weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """Positions (count,) drawn in proportion to weights (chain,): each is drawn within 1 of its mean number of times.

    >>> choose_by_weight(np.log([0.5, 0.25, 0.25]), 4, np.random.default_rng(0))
    array([0, 0, 1, 2])
    """
    spent = np.cumsum(np.exp(log_weights - logsumexp(log_weights)))
    return np.minimum(
        np.searchsorted(spent / spent[-1], (np.arange(count) + rng.random()) / count), len(spent) - 1
    )


@dataclass(frozen=True)
class Finding:
    """What one start says of the chosen path, in units of the mean forward weight W.

    `log_z` is its own estimate, `reach` the mean reach of its states, `lacking` the mass D / W that the path lacks
    according to it, with its standard error, and `rare` the variance that mass which the path reaches seldom adds to
    W / Z: the mean of r (1 - r), for the number of visits to it is close to Poisson.
    """

    name: str
    log_z: float
    reach: float
    lacking: float
    stderr: float
    rare: float

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

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**vars(self), "nats": self.nats, "least_nats": self.least_nats}


@dataclass(frozen=True)
class Evidence:
    """What other starts found, and what finding it cost. With no findings nothing was asked."""

    findings: tuple[Finding, ...]
    modes: int
    chain_steps: int

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


def gather_evidence(
    model: Model,
    base: Base,
    betas: Floats,
    log_weights: Floats,
    others: Sequence[tuple[Base, Floats]] = (),
    *,
    chains: int = 32,
    melted: int = 16,
    modes: int = 16,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Evidence:
    """Ask other starts whether the path from `base` along `betas`, with log weights (chain,), lacks mass.

    `others` are bases with betas of their own: from each, `chains` chains are annealed and `melted` end states, drawn
    by weight, melted along the chosen path. Up to `modes` mean-field modes are looked at: two states of each are
    melted, and from those that seem out of reach (at most 8) chains are annealed too, in a quarter of the steps.
    """
    if len(log_weights) < 2:
        return Evidence((), 0, 0)
    asked = _Asked(model, base, betas, log_weights, seed, threads, progress)
    rng = generator(seed, _PURPOSE, _CHOICE, 0, 0, 0)
    starts = [
        run_start(model, other, own, chains, number=k + 1, seed=seed, threads=threads, progress=progress)
        for k, (other, own) in enumerate(others)
    ]
    chosen = [choose_by_weight(start.log_weights, melted, rng) for start in starts]
    found = find_modes(model, count=modes, seed=seed)
    looked_at = asked.states_of(found, rng)
    batches = [start.states[picked] for start, picked in zip(starts, chosen, strict=True)]
    *reaches, seen = asked.reach([*batches, looked_at], 0)
    seen = seen.reshape(_LOOKS, -1)
    mode_reach = seen.min(axis=0)
    findings = [
        _finding(start.base.name, [(start.log_weights, reach)], log_weights)
        for start, reach in zip(starts, reaches, strict=True)
    ]
    promising = found.bounds + np.log(np.maximum(1 - mode_reach, 1e-300))
    log_z = log_mean_exp(log_weights)
    hopeful = (mode_reach < _REACHED) & (found.bounds > log_z - _HOPELESS)
    hopeful |= promising > log_z + math.log(_MATTERS)
    ranked = [int(k) for k in np.argsort(-promising) if hopeful[k]]
    far, rest = ranked[:_FAR_MODES], ranked[_FAR_MODES:]
    own_betas = np.linspace(0.0, 1.0, int(np.clip((len(betas) - 1) // 4, *_MODE_STEPS)) + 1)
    bases = mode_bases(model, found)
    groups: list[tuple[Floats, Bits]] = []
    for k in far:
        start = run_start(
            model,
            bases[k],
            own_betas,
            _MODE_CHAINS,
            number=100 + k,
            seed=seed,
            threads=threads,
            progress=progress,
        )
        own = np.where(nearest_mode(found, start.states) == k, start.log_weights, -np.inf)
        if np.isfinite(own).any():
            groups.append((own, start.states[choose_by_weight(own, _MODE_MELTED, rng)]))
    if groups:
        reaches = asked.reach([states for _, states in groups], 1)
        weighted = [(own, reach) for (own, _), reach in zip(groups, reaches, strict=True)]
        # Of the modes that are too many for chains the mean-field bounds count: they are lower bounds too.
        weighted += [(np.full(2, found.bounds[k]), seen[:, k]) for k in rest]
        findings.append(_finding("modes", weighted, log_weights))
    steps = sum(chains * (len(own) - 1 + _MOVES) for _, own in others) + asked.melting_steps(
        melted * len(starts) + len(looked_at) + _MODE_MELTED * len(groups)
    )
    steps += len(far) * _MODE_CHAINS * (len(own_betas) - 1 + _MOVES) + len(looked_at) * _MODE_MOVES
    return Evidence(tuple(findings), len(found.bounds), steps)


@dataclass(frozen=True)
class _Asked:
    """The chosen path, and how its reach is found."""

    model: Model
    base: Base
    betas: Floats
    log_weights: Floats
    seed: int
    threads: int | None
    progress: Progress | None

    def reach(self, batches: Sequence[Bits], number: int) -> list[Floats]:
        """Reach (state,) of each batch of states (state, even unit), melted together."""
        states = np.concatenate(batches)
        reverse = reverse_log_weights(
            self.model,
            self.base,
            self.betas,
            states,
            number=number,
            seed=self.seed,
            threads=self.threads,
            progress=self.progress,
        )
        reach = np.minimum(np.exp(log_reach(self.log_weights, reverse)), 1.0)
        return np.split(reach, np.cumsum([len(batch) for batch in batches])[:-1])

    def states_of(self, modes: Modes, rng: np.random.Generator) -> Bits:
        """States (look and mode, even unit) of each mode: drawn from its rates, and moved a little by the model."""
        rates = np.tile(modes.even, (_LOOKS, 1))
        drawn = (rng.random(rates.shape) < rates).astype(np.uint8)
        run = anneal(
            family_of(self.model, self.base),
            [Leg(np.ones(_MODE_MOVES + 1))],
            drawn,
            chain_generators(self.seed, _PURPOSE, _keys(_LOOK, 0, len(drawn))),
            threads=self.threads,
        )
        return run.state

    def melting_steps(self, states: int) -> int:
        """Chain-steps of melting so many states."""
        return states * (len(self.betas) - 1)


def _finding(name: str, weighted: Sequence[tuple[Floats, Floats]], forward: Floats) -> Finding:
    """What starts that share the space say together, given log weights (chain,) and reaches (state,) of each."""
    log_z = float(log_mean_exp(forward))
    total = lacking = variance = rare = reached = 0.0
    for log_weights, reach in weighted:
        mass = math.exp(float(log_mean_exp(log_weights)) - log_z)
        beyond = 1 - reach
        spread = float(np.std(np.exp(log_weights - np.max(log_weights)), ddof=1))
        relative = (
            spread / float(np.mean(np.exp(log_weights - np.max(log_weights)))) / math.sqrt(len(log_weights))
        )
        total += mass
        reached += mass * float(reach.mean())
        lacking += mass * float(beyond.mean())
        rare += mass * float((reach * beyond).mean())
        variance += (mass * float(beyond.mean()) * relative) ** 2 + mass**2 * float(
            np.var(beyond, ddof=1)
        ) / len(reach)
    return Finding(
        name,
        log_z + math.log(total) if total > 0 else -math.inf,
        reached / total if total > 0 else math.nan,
        lacking,
        math.sqrt(variance),
        rare,
    )


def _keys(direction: int, number: int, chains: int) -> NDArray[np.integer]:
    keys = np.empty((chains, 4), np.int64)
    keys[:] = direction, number, 0, 0
    keys[:, 3] = np.arange(chains)
    return keys
