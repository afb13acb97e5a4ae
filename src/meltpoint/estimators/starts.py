"""Other starts: chains annealed from other bases and from mean-field modes, and melted along the chosen path."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.blocks import Segment
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.tiles import Annealed
from meltpoint.estimators.chain_batches import Annealing, chains_batch
from meltpoint.estimators.evidence import MODES, Start, Starts, is_weighed, reach_of
from meltpoint.estimators.modes import find_modes, mode_bases, nearest_mode
from meltpoint.estimators.optima import find_optima
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose, generator
from meltpoint.runs.batch import Batch
from meltpoint.runs.run import Run
from meltpoint.statistics.elementary import exp, log
from meltpoint.statistics.log_space import log_mean_exp

TASK = "other starts"
"""What progress calls it."""

_FORWARD, _MELT, _CHOICE, _LOOK = range(4)
_AROUND = 5  # 4 is the modes' own
_MOST_MODES = 16
_MOVES = 5  # at beta 1, after annealing
_MODE_MOVES = 10  # at beta 1, from a draw of a mode's rates
_PLACES = 12  # most modes from which chains are annealed
_MODE_CHAINS = 24
_MODE_MELTED = 6
_LOOKS = 2  # states of a mode that are melted before chains are annealed from it
_MATTERS = 1e-3  # share of Z out of reach that is worth the chains
_MODE_STEPS = 50, 1000
# Reach from which on a mode need not be weighed. Its bound does not count: thirty independent units of two states
# loosen it by 20 nats.
_REACHED = 0.9
_OUT_OF_REACH = 0.5  # reach below which a mode that is not weighed is a doubt


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
        self, along: Annealing, segments: Sequence[Segment], state: Bits, kind: int, number: int
    ) -> Batch[Annealed]:
        """Chains through the segments; `kind` and `number` name them and their random numbers."""
        keys = np.empty((len(state), 3), np.int64)
        keys[:] = kind, number, 0
        keys[:, 2] = np.arange(len(state))
        return chains_batch(
            f"{kind}-{number}", along, segments, state, Streams(self.seed, Purpose.EVIDENCE, keys)
        )

    def anneal(self, batches: Sequence[Batch[Annealed]]) -> list[Annealed]:
        """What became of chains, all of them finished."""
        return self.run.together(batches, TASK, in_turn=True)


def run_starts(
    model: Model,
    bases: Sequence[tuple[Base, Floats, int]],
    chains: int,
    how: Computation,
    moves: int = _MOVES,
) -> list[tuple[Floats, Bits]]:
    """Log weights (chain,) and end states (chain, unit) of chains from each base, after some moves at beta 1.

    The moves leave the states properly weighted. Bases come with their betas and a number, which tells starts apart: no
    two may share random numbers.
    """
    batches = []
    starts = [how.along(model, base) for base, _, _ in bases]
    for along, (_, betas, number) in zip(starts, bases, strict=True):
        segments = [Segment(betas), Segment(np.ones(moves + 1))]
        batches.append(how.chains(along, segments, along.anywhere(chains), _FORWARD, number))
    return [
        (found.log_weights + along.log_z_base, found.state)
        for along, found in zip(starts, how.anneal(batches), strict=True)
    ]


def reverse_log_weights(
    along: Annealing, betas: Floats, states: Bits, number: int, how: Computation
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
    by weight, melted along the chosen path. Up to 16 modes are looked at (mean-field ones of a model with two
    sides, local optima of others): two states of each are melted, and from those that seem out of reach (at most 12)
    chains are annealed too, in a quarter of the steps.
    """
    if len(forward) < 2:
        return Starts()
    how = how or Computation()
    asked = _Asked(how, how.along(model, base), betas)
    rng = generator(how.seed, Purpose.EVIDENCE, _CHOICE)
    found: list[Start] = []
    steps = 0
    batches: list[Bits] = []
    weights: list[Floats] = []
    numbered = [(other, own_betas, k) for k, (other, own_betas) in enumerate(others)]
    for (_, own_betas, _), (log_weights, states) in zip(
        numbered, run_starts(model, numbered, chains, how), strict=True
    ):
        weights.append(log_weights)
        batches.append(states[choose_by_weight(log_weights, melted, rng)])
        steps += chains * (len(own_betas) - 1 + _MOVES)
    found_modes = asked.modes(model, _MOST_MODES, rng)
    looked_at = asked.along.anywhere(0)
    if found_modes is not None:
        looked_at = found_modes.looks
        steps += found_modes.chain_steps
    unweighed = 0
    *reverse, seen = asked.reverse([*batches, looked_at], 0)
    for (other, _), log_weights, own in zip(others, weights, reverse, strict=True):
        found.append(Start(other.name, log_weights, own))
    melting = melted * len(others) + len(looked_at)
    if found_modes is not None:
        of_modes, unweighed, more_steps = _ask_modes(model, found_modes, seen, forward, asked, rng)
        found += of_modes
        melting += sum(len(start.log_reverse_weights) for start in of_modes)
        steps += more_steps
    steps += melting * (len(betas) - 1)
    count = 0 if found_modes is None else len(found_modes.bounds)
    return Starts(tuple(found), count, unweighed, steps, log_z_ceiling=model.log_z_ceiling)


@dataclass(frozen=True, eq=False)
class _Modes:
    """Modes with their lower bounds on log Z (mode,) and bases, states (look and mode, unit) of each, and the cost.

    `nearest` says to which mode states (state, unit) belong.
    """

    bounds: Floats
    bases: Sequence[Base]
    looks: Bits
    nearest: Callable[[Bits], NDArray[np.integer]]
    chain_steps: int


def _ask_modes(
    model: Model, modes: _Modes, seen: Floats, forward: Floats, asked: "_Asked", rng: np.random.Generator
) -> tuple[list[Start], int, int]:
    """Starts from modes, how many out of reach were not weighed, and chain-steps besides melting.

    `seen` (look and mode,) are reverse log weights of states of each mode.
    """
    seen = seen.reshape(_LOOKS, -1)
    reach = reach_of(forward, seen).min(axis=0)
    log_z = float(log_mean_exp(forward))
    promising = modes.bounds + log(np.maximum(1 - reach, 1e-300))
    weighed = (reach < _REACHED) | (promising > log_z + math.log(_MATTERS))
    ranked = [int(k) for k in np.lexsort((-promising, reach >= _OUT_OF_REACH)) if weighed[k]]
    far = ranked[:_PLACES]
    betas = np.linspace(0.0, 1.0, int(np.clip((len(asked.betas) - 1) // 4, *_MODE_STEPS)) + 1)
    groups: list[tuple[Floats, Bits]] = []
    unweighed = int((reach[ranked[_PLACES:]] < _OUT_OF_REACH).sum())
    of_far = run_starts(model, [(modes.bases[k], betas, 100 + k) for k in far], _MODE_CHAINS, asked.how)
    for k, (log_weights, states) in zip(far, of_far, strict=True):
        own = np.where(modes.nearest(states) == k, log_weights, -np.inf)
        if np.isfinite(own).any():
            groups.append((own, states[choose_by_weight(own, _MODE_MELTED, rng)]))
        unweighed += bool(reach[k] < _OUT_OF_REACH) and not is_weighed(own)
    steps = len(far) * _MODE_CHAINS * (len(betas) - 1 + _MOVES)
    reverse = asked.reverse([states for _, states in groups], 1) if groups else []
    starts = [Start(MODES, own, melted) for (own, _), melted in zip(groups, reverse, strict=True)]
    return starts, unweighed, steps


@dataclass(frozen=True, eq=False)
class _Asked:
    """The chosen path, and how states are melted along it."""

    how: Computation
    along: Annealing
    betas: Floats

    def reverse(self, batches: Sequence[Bits], number: int) -> list[Floats]:
        """Reverse log weights (state,) of each batch of states (state, unit), melted together."""
        states = np.concatenate(batches)
        if len(states) == 0:
            return [np.zeros(0) for _ in batches]
        reverse = reverse_log_weights(self.along, self.betas, states, number, self.how)
        return np.split(reverse, np.cumsum([len(batch) for batch in batches])[:-1])

    def modes(self, model: Model, count: int, rng: np.random.Generator) -> _Modes | None:
        """Mean-field modes of a model with two sides, or local optima of another one with finitely many states."""
        fields = find_modes(model, count=count, seed=self.how.seed)
        if fields is not None:
            rates = np.tile(fields.even, (_LOOKS, 1))
            drawn = (rng.random(rates.shape) < rates).astype(np.uint8)
            looks = self._move(drawn, _LOOK)
            nearest = partial(nearest_mode, fields)
            cost = len(looks) * _MODE_MOVES
            return _Modes(fields.bounds, mode_bases(model, fields), looks, nearest, cost)
        moved = 0

        def move(states: Bits) -> Bits:
            nonlocal moved
            moved += len(states) * _MODE_MOVES
            return self._move(states, _AROUND)

        optima = find_optima(model, move, count=count, seed=self.how.seed)
        if optima is None:
            return None
        return _Modes(optima.bounds, optima.bases, optima.draw(_LOOKS, rng), optima.nearest, moved)

    def _move(self, states: Bits, kind: int) -> Bits:
        """States (chain, unit) after some moves in the model."""
        moves = [Segment(np.ones(_MODE_MOVES + 1))]
        (run,) = self.how.anneal([self.how.chains(self.along, moves, states, kind, 0)])
        return run.state
