"""Other starts: chains annealed from other bases and from candidate modes, and melted along the chosen path."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.tiles import Annealed
from meltpoint.estimators.chain_batches import Annealing, chain_keys, chains_batch
from meltpoint.estimators.evidence import MODES, Start, Starts, finding_of, reach_of
from meltpoint.estimators.modes import base_of_means, find_modes, groups_of, mean_states
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats, States
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose, generator
from meltpoint.runs.batch import Batch
from meltpoint.runs.run import Run
from meltpoint.statistics.elementary import exp
from meltpoint.statistics.log_space import log_mean_exp

TASK = "other starts"
"""What progress calls it."""

_FORWARD, _MELT, _CHOICE, _LOOK = range(4)  # 4 is the modes' own
_MOVES = 5  # at beta 1, after annealing
_MOST_MODES = 128
_SNAPSHOTS, _MODE_MOVES = 12, 4  # of chains in the model from each mode, and moves between them
_FORGOTTEN = 4  # first snapshots
_MOST_VALUES = 50_000_000  # of all snapshots that are kept
_SHARE_OF_STEPS = 4  # of the chosen path's, for one of the chains that ask for modes
_LEAST_STEPS, _MOST_STEPS = 50, 1000
_REACHED = 0.9  # reach from which on a mode need not be weighed, or its weight known
_GROUPS = 1, 2, 4, 8
_GROUP_CHAINS = 24
_GROUP_MELTED = 4
_MATTERS = 0.1  # share of Z that a mode might hold beyond what was found, for a doubt


@dataclass(frozen=True, eq=False)
class Computation:
    """How chains of other starts are run; of these only the seed and the precision change a number."""

    seed: int = 0
    precision: Precision = "mixed"
    run: Run = field(default_factory=Run)

    def along(self, model: Model, base: Base) -> Annealing:
        """Annealing from a base to a model."""
        return Annealing(model, base, self.precision)

    def chains(
        self, along: Annealing, segments: Sequence[Segment], state: States | int, kind: int, number: int
    ) -> Batch[Annealed]:
        """Chains through the segments; `kind` and `number` name them and their random numbers."""
        count = state if isinstance(state, int) else len(state)
        streams = Streams(self.seed, Purpose.EVIDENCE, chain_keys(kind, number, np.arange(count)))
        return chains_batch(f"{kind}-{number}", along, segments, state, streams)

    def anneal(self, batches: Sequence[Batch[Annealed]]) -> list[Annealed]:
        """What became of chains, all of them finished."""
        return self.run.together(batches, TASK, in_turn=True)


def run_starts(
    model: Model,
    bases: Sequence[tuple[Base, Floats, int]],
    chains: int,
    how: Computation,
    moves: int = _MOVES,
) -> list[tuple[Floats, States]]:
    """Log weights (chain,) and end states (chain, unit) of chains from each base, after some moves at beta 1.

    The moves leave the states properly weighted. Bases come with their betas and a number, which tells starts apart: no
    two may share random numbers.
    """
    starts = [how.along(model, base) for base, _, _ in bases]
    batches = [
        how.chains(along, [Segment(betas), Segment(np.ones(moves + 1))], chains, _FORWARD, number)
        for along, (_, betas, number) in zip(starts, bases, strict=True)
    ]
    return [
        (found.log_weights + along.log_z_base, found.state)
        for along, found in zip(starts, how.anneal(batches), strict=True)
    ]


def reverse_log_weights(
    along: Annealing, betas: Floats, states: States, number: int, how: Computation
) -> Floats:
    """log w_rev (state,) of states (state, unit) melted back along a path, one chain each."""
    melt = Segment(betas[::-1].copy(), reversed_sweeps=True)
    (run,) = how.anneal([how.chains(along, [melt], states, _MELT, number)])
    return along.log_z_base - run.log_weights


def choose_by_weight(log_weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """Positions (count,) drawn in proportion to weights (chain,): each is drawn within 1 of its mean number of times.

    >>> choose_by_weight(np.log([0.5, 0.25, 0.25]), 4, np.random.default_rng(0))
    array([0, 0, 1, 2])
    """
    spent = np.cumsum(exp(log_weights - np.max(log_weights)))
    return np.minimum(
        np.searchsorted(spent / spent[-1], (np.arange(count) + rng.random()) / count), len(spent) - 1
    )


def ask_starts(
    model: Model,
    base: Base,
    betas: Floats,
    forward: Floats,
    others: Sequence[tuple[Base, Floats]] = (),
    how: Computation | None = None,
    *,
    chains: int = 32,
    melted: int = 16,
) -> Starts:
    """Ask other starts whether the path from `base` along `betas`, with log weights `forward` (chain,), lacks mass.

    `others` are bases with betas of their own: from each, `chains` chains are annealed and `melted` end states, drawn
    by weight, melted along the chosen path. Up to 128 modes are tried: chains go on from each in the model, and their
    states are melted in a quarter of the steps. Those that seem out of reach are weighed in groups.
    """
    if len(forward) < 2:
        return Starts()
    how = how or Computation()
    asked = _Asked(model, how, how.along(model, base), betas, forward)
    rng = generator(how.seed, Purpose.EVIDENCE, _CHOICE)
    numbered = [(own, own_betas, k) for k, (own, own_betas) in enumerate(others)]
    weighted = run_starts(model, numbered, chains, how)
    asked.steps += sum(chains * (len(own_betas) - 1 + _MOVES) for _, own_betas in others)
    ends = [states[choose_by_weight(log_weights, melted, rng)] for log_weights, states in weighted]
    found = [
        Start(other.name, log_weights, own)
        for (other, _), (log_weights, _), own in zip(others, weighted, asked.melt(ends, 0), strict=True)
    ]
    modes = find_modes(model, count=_MOST_MODES, seed=how.seed)
    groups = [] if modes is None else asked.weigh_modes(modes, rng)
    return Starts(
        starts=(*found, *(group.start for group in groups if group.start)),
        modes=0 if modes is None else len(modes),
        far=sum(group.modes for group in groups),
        unweighed=sum(group.modes for group in groups if group.is_doubtful),
        chain_steps=asked.steps,
        log_z_ceiling=model.log_z_ceiling,
    )


@dataclass(eq=False)
class _Asked:
    """The chosen path and its weights, how states are melted along it, and the chain-steps that all of it takes."""

    model: Model
    how: Computation
    along: Annealing
    betas: Floats
    forward: Floats
    steps: int = 0

    def melt(self, batches: Sequence[States], number: int, betas: Floats | None = None) -> list[Floats]:
        """Reverse log weights (state,) of each batch of states (state, unit), melted together."""
        betas = self.betas if betas is None else betas
        states = np.concatenate([self.along.anywhere(0), *batches])
        self.steps += len(states) * (len(betas) - 1)
        reverse = np.zeros(0)
        if len(states):
            reverse = reverse_log_weights(self.along, betas, states, number, self.how)
        return np.split(reverse, np.cumsum([len(batch) for batch in batches]))[:-1]

    def weigh_modes(self, modes: States, rng: np.random.Generator) -> "list[_Group]":
        """The modes (mode, unit) that are out of reach, in groups that were weighed.

        The modes are grouped in several ways. Each gives an estimate of what they hold, and each errs low: the one
        counts of which most is certain.
        """
        states, means = self._explore(modes, rng)
        fewer = np.unique(np.linspace(0, len(self.betas) - 1, self._fewer_steps + 1).round().astype(np.int64))
        (seen,) = self.melt([states], 1, self.betas[fewer])
        (far,) = np.nonzero(reach_of(self.forward, seen) < _REACHED)
        if len(far) == 0:
            return []
        means = means[:, far]
        points = means.mean(axis=0).reshape(len(far), -1)
        chosen: list[_Group] = []
        largest = 0.0
        for most in _GROUPS:
            members = groups_of(points, most)
            if len(members) <= most // 2:
                break  # no finer than the last
            groups = self._weigh_groups([means[:, own] for own in members], members, most, rng)
            weighed = [group.start for group in groups if group.start]
            certain = finding_of(MODES, weighed, self.forward).least_nats
            if certain >= largest:
                largest, chosen = certain, groups
        return chosen

    @property
    def _fewer_steps(self) -> int:
        """Steps of chains that ask for modes."""
        steps = len(self.betas) - 1
        return min(steps, int(np.clip(steps // _SHARE_OF_STEPS, _LEAST_STEPS, _MOST_STEPS)))

    def _explore(self, states: States, rng: np.random.Generator) -> tuple[States, Floats]:
        """Where chains from states (chain, unit) get to, and means (snapshot, chain, unit, state) on the way."""
        mrf = self.model.undirected.mrf
        assert mrf is not None, "its modes were found"
        moves = [Segment(np.ones(_MODE_MOVES + 1))]
        kept: list[Floats] = []
        for snapshot in range(_SNAPSHOTS):
            self.steps += len(states) * _MODE_MOVES
            (run,) = self.how.anneal([self.how.chains(self.along, moves, states, _LOOK, snapshot)])
            states = run.state
            if snapshot == _FORGOTTEN or (
                snapshot > _FORGOTTEN and kept[0].size * (len(kept) + 1) <= _MOST_VALUES
            ):
                kept.append(mean_states(mrf, states, rng))
        return states, np.stack(kept)

    def _weigh_groups(
        self,
        means: Sequence[Floats],
        members: Sequence[NDArray[np.integer]],
        number: int,
        rng: np.random.Generator,
    ) -> "list[_Group]":
        """Weights of groups of modes with these means (snapshot, mode, unit, state), which share the space."""
        bases = [
            base_of_means(self.model, own.reshape(-1, *own.shape[2:]), f"modes {k + 1}")
            for k, own in enumerate(means)
        ]
        betas = np.linspace(0.0, 1.0, self._fewer_steps + 1)
        numbered = [(base, betas, 100 * number + k) for k, base in enumerate(bases)]
        weighted = run_starts(self.model, numbered, _GROUP_CHAINS, self.how)
        self.steps += len(bases) * _GROUP_CHAINS * (len(betas) - 1 + _MOVES)
        paths = [self.model.path(base) for base in bases]
        inside: list[Floats] = []
        chosen: list[States] = []
        for k, (log_weights, states) in enumerate(weighted):
            nearest = np.argmax([path.log_prob_base(states) for path in paths], axis=0)
            inside.append(np.where(nearest == k, log_weights, -np.inf))
            count = _GROUP_MELTED if np.isfinite(inside[k]).any() else 0
            chosen.append(states[choose_by_weight(inside[k], count, rng)] if count else states[:0])
        reverse = self.melt(chosen, 1 + number)
        return [
            _Group(len(own), Start(MODES, log_weights, melted) if len(melted) else None, self.forward)
            for own, log_weights, melted in zip(members, inside, reverse, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Group:
    """How many modes a group has, and its weights; None where all chains from there ended nearer to other groups."""

    modes: int
    start: Start | None
    forward: Floats

    @property
    def is_doubtful(self) -> bool:
        """Whether it might hold more, out of reach, than its weights say: a tenth of Z more, if these are lognormal.

        The mean of n lognormal weights is far below its expectation where their logarithms spread by more than
        sqrt(2 log n): then no weight near those that make up the expectation is among them. Weights of chains that
        ended in several phases are not lognormal, and spread by hundreds of nats; so nothing is extrapolated where
        the states that they lead to are in reach.
        """
        if self.start is None or np.isfinite(self.start.log_weights).sum() < 2:
            return False
        own = self.start.log_weights[np.isfinite(self.start.log_weights)]
        share = len(own) / len(self.start.log_weights)
        expected = float(own.mean() + own.var(ddof=1) / 2) + math.log(share)
        beyond = 1 - float(reach_of(self.forward, self.start.log_reverse_weights).mean())
        missing = max(expected - float(log_mean_exp(self.start.log_weights)), 0.0)
        if beyond <= 1 - _REACHED:
            return False
        held = expected - float(log_mean_exp(self.forward)) + math.log(beyond)
        return missing > 1 and held > math.log(_MATTERS)
