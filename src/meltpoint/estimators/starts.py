"""Other starts: chains annealed from other bases and from mean-field modes, and melted along the chosen path."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.backend import PreparedPath
from meltpoint.annealing.base import Base, annealing_path
from meltpoint.annealing.loop import Annealed, anneal, prepare_path
from meltpoint.annealing.precision import Precision
from meltpoint.errors import Progress
from meltpoint.estimators.ais import anywhere
from meltpoint.estimators.evidence import MODES, Start, Starts, reach_of
from meltpoint.estimators.modes import find_modes, mode_bases, nearest_mode
from meltpoint.estimators.optima import find_optima
from meltpoint.kernels.streams import Streams
from meltpoint.models.blocks import Segment
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.log_space import log_mean_exp
from meltpoint.units.unit import Bits, Floats

TASK = "other starts"
"""What progress calls it."""

_FORWARD, _MELT, _CHOICE, _LOOK = range(4)
_AROUND = 5  # 4 is the modes' own
_MOST_MODES = 16
_MOVES = 5  # at beta 1, after annealing
_MODE_MOVES = 10  # at beta 1, from a draw of a mode's rates
_FAR_MODES = 8  # most modes out of reach from which chains are annealed
_MODE_CHAINS = 24
_MODE_MELTED = 6
_LOOKS = 2  # states of a mode that are melted before chains are annealed from it
_MATTERS = 1e-3  # share of Z out of reach that is worth the chains
_MODE_STEPS = 50, 1000
_REACHED = 0.9  # reach from which on a mode need not be asked
_HOPELESS = 20.0  # nats that a mode's bound may lie below the estimate of log Z: bounds are far from tight


@dataclass(frozen=True, eq=False)
class Computation:
    """How chains of other starts are run; of these settings only the seed and the precision change a number."""

    seed: int = 0
    precision: Precision = "mixed"
    threads: int | None = None
    progress: Progress | None = None

    def prepare(self, model: Model, base: Base) -> PreparedPath:
        """The path from a base to a model."""
        return prepare_path(annealing_path(model, base), self.precision)

    def anneal(
        self, prepared: PreparedPath, segments: Sequence[Segment], state: Bits, kind: int, number: int
    ) -> Annealed:
        """Chains through the segments, all of them finished; `kind` and `number` name their random numbers."""
        keys = np.empty((len(state), 3), np.int64)
        keys[:] = kind, number, 0
        keys[:, 2] = np.arange(len(state))
        run = anneal(
            prepared,
            segments,
            state,
            Streams(self.seed, Purpose.EVIDENCE, keys),
            threads=self.threads,
            progress=self.progress,
            task=TASK,
        )
        if run.interrupted:
            raise KeyboardInterrupt
        return run


def run_start(
    model: Model,
    base: Base,
    betas: Floats,
    chains: int,
    number: int,
    how: Computation,
    moves: int = _MOVES,
) -> tuple[Floats, Bits]:
    """Log weights (chain,) and end states (chain, unit) of chains from a base, after some moves at beta 1.

    The moves leave the states properly weighted. `number` tells starts apart: no two may share random numbers.
    """
    prepared = how.prepare(model, base)
    path = prepared.path
    segments = [Segment(betas), Segment(np.ones(moves + 1))]
    run = how.anneal(prepared, segments, anywhere(path, chains), _FORWARD, number)
    return run.log_weights + path.log_z_base + path.target.log_constant, run.state


def reverse_log_weights(
    prepared: PreparedPath, betas: Floats, states: Bits, number: int, how: Computation
) -> Floats:
    """log w_rev (state,) of states (state, unit) melted back along a path, one chain each."""
    melt = Segment(betas[::-1].copy(), reversed_sweeps=True)
    run = how.anneal(prepared, [melt], states, _MELT, number)
    return prepared.path.log_z_base + prepared.path.target.log_constant - run.log_weights


def choose_by_weight(log_weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.integer]:
    """Positions (count,) drawn in proportion to weights (chain,): each is drawn within 1 of its mean number of times.

    >>> choose_by_weight(np.log([0.5, 0.25, 0.25]), 4, np.random.default_rng(0))
    array([0, 0, 1, 2])
    """
    spent = np.cumsum(np.exp(log_weights - np.max(log_weights)))
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
    sides, local optima of others): two states of each are melted, and from those that seem out of reach (at most 8)
    chains are annealed too, in a quarter of the steps.
    """
    if len(forward) < 2:
        return Starts()
    how = how or Computation()
    asked = _Asked(how, how.prepare(model, base), betas)
    rng = generator(how.seed, Purpose.EVIDENCE, _CHOICE)
    found: list[Start] = []
    steps = 0
    batches: list[Bits] = []
    weights: list[Floats] = []
    for k, (other, own_betas) in enumerate(others):
        log_weights, states = run_start(model, other, own_betas, chains, k, how)
        weights.append(log_weights)
        batches.append(states[choose_by_weight(log_weights, melted, rng)])
        steps += chains * (len(own_betas) - 1 + _MOVES)
    found_modes = asked.modes(model, _MOST_MODES, rng)
    looked_at = anywhere(asked.prepared.path, 0)
    if found_modes is not None:
        looked_at = found_modes.looks
        steps += found_modes.chain_steps
    *reverse, seen = asked.reverse([*batches, looked_at], 0)
    for (other, _), log_weights, own in zip(others, weights, reverse, strict=True):
        found.append(Start(other.name, log_weights, own))
    melting = melted * len(others) + len(looked_at)
    if found_modes is not None:
        of_modes, more_melting, more_steps = _ask_modes(model, found_modes, seen, forward, asked, rng)
        found += of_modes
        melting += more_melting
        steps += more_steps
    steps += melting * (len(betas) - 1)
    count = 0 if found_modes is None else len(found_modes.bounds)
    return Starts(tuple(found), count, steps, log_z_ceiling=model.log_z_ceiling)


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
    """Starts from modes out of reach, numbers of states melted for them, and chain-steps besides.

    `seen` (look and mode,) are reverse log weights of states of each mode.
    """
    seen = seen.reshape(_LOOKS, -1)
    reach = reach_of(forward, seen).min(axis=0)
    log_z = float(log_mean_exp(forward))
    promising = modes.bounds + np.log(np.maximum(1 - reach, 1e-300))
    hopeful = (reach < _REACHED) & (modes.bounds > log_z - _HOPELESS)
    hopeful |= promising > log_z + math.log(_MATTERS)
    ranked = [int(k) for k in np.argsort(-promising) if hopeful[k]]
    far, rest = ranked[:_FAR_MODES], ranked[_FAR_MODES:]
    betas = np.linspace(0.0, 1.0, int(np.clip((len(asked.betas) - 1) // 4, *_MODE_STEPS)) + 1)
    groups: list[tuple[Floats, Bits]] = []
    for k in far:
        log_weights, states = run_start(model, modes.bases[k], betas, _MODE_CHAINS, 100 + k, asked.how)
        own = np.where(modes.nearest(states) == k, log_weights, -np.inf)
        if np.isfinite(own).any():
            groups.append((own, states[choose_by_weight(own, _MODE_MELTED, rng)]))
    steps = len(far) * _MODE_CHAINS * (len(betas) - 1 + _MOVES)
    if not groups:
        return [], 0, steps
    reverse = asked.reverse([states for _, states in groups], 1)
    starts = [Start(MODES, own, melted) for (own, _), melted in zip(groups, reverse, strict=True)]
    # Of the modes that are too many for chains the mean-field bounds count: they are lower bounds too.
    starts += [Start(MODES, np.full(2, modes.bounds[k]), seen[:, k]) for k in rest]
    return starts, _MODE_MELTED * len(groups), steps


@dataclass(frozen=True, eq=False)
class _Asked:
    """The chosen path, and how states are melted along it."""

    how: Computation
    prepared: PreparedPath
    betas: Floats

    def reverse(self, batches: Sequence[Bits], number: int) -> list[Floats]:
        """Reverse log weights (state,) of each batch of states (state, unit), melted together."""
        states = np.concatenate(batches)
        if len(states) == 0:
            return [np.zeros(0) for _ in batches]
        reverse = reverse_log_weights(self.prepared, self.betas, states, number, self.how)
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
        return self.how.anneal(self.prepared, [Segment(np.ones(_MODE_MOVES + 1))], states, kind, 0).state
