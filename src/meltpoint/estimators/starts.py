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
from meltpoint.estimators.evidence import MODES, Start, Starts, is_weighed, reach_of
from meltpoint.estimators.modes import Modes, find_modes, nearest_mode
from meltpoint.kernels.streams import Streams
from meltpoint.layers.unit import Floats, States
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
_MODE_MOVES = 10  # at beta 1, from where a mode was found
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
    by weight, melted along the chosen path. Up to 16 modes are tried (mean-field ones of a model with two
    sides, local optima of others): two states of each are melted, and from those that seem out of reach (at most 12)
    chains are annealed too, in a quarter of the steps.
    """
    if len(forward) < 2:
        return Starts()
    how = how or Computation()
    along = how.along(model, base)
    rng = generator(how.seed, Purpose.EVIDENCE, _CHOICE)
    weighted = run_starts(
        model, [(own, own_betas, k) for k, (own, own_betas) in enumerate(others)], chains, how
    )
    ends = [states[choose_by_weight(log_weights, melted, rng)] for log_weights, states in weighted]
    steps = sum(chains * (len(own_betas) - 1 + _MOVES) for _, own_betas in others)

    def move(states: States) -> States:
        nonlocal steps
        steps += len(states) * _MODE_MOVES
        kind = _AROUND if model.bipartite is None else _LOOK
        (run,) = how.anneal([how.chains(along, [Segment(np.ones(_MODE_MOVES + 1))], states, kind, 0)])
        return run.state

    def melt(batches: Sequence[States], number: int) -> list[Floats]:
        """Reverse log weights (state,) of each batch of states (state, unit), melted together."""
        nonlocal steps
        states = np.concatenate([along.anywhere(0), *batches])
        steps += len(states) * (len(betas) - 1)
        reverse = reverse_log_weights(along, betas, states, number, how) if len(states) else np.zeros(0)
        return np.split(reverse, np.cumsum([len(batch) for batch in batches]))[:-1]

    modes = find_modes(model, move, rng, count=_MOST_MODES, looks=_LOOKS, seed=how.seed)
    if modes is None:
        modes = Modes((), np.zeros(0), np.zeros((_LOOKS, 0, along.path.n_state), along.path.dtype))
    *reverse, seen = melt([*ends, modes.states.reshape(-1, along.path.n_state)], 0)
    found = [
        Start(other.name, log_weights, own)
        for (other, _), (log_weights, _), own in zip(others, weighted, reverse, strict=True)
    ]
    reach = reach_of(forward, seen.reshape(_LOOKS, -1)).min(axis=0)
    far, unweighed = _far_modes(modes.bounds, reach, float(log_mean_exp(forward)))
    mode_betas = np.linspace(0.0, 1.0, int(np.clip((len(betas) - 1) // 4, *_MODE_STEPS)) + 1)
    of_far = run_starts(model, [(modes.bases[k], mode_betas, 100 + k) for k in far], _MODE_CHAINS, how)
    steps += len(far) * _MODE_CHAINS * (len(mode_betas) - 1 + _MOVES)
    in_modes: list[tuple[Floats, States]] = []
    for k, (log_weights, states) in zip(far, of_far, strict=True):
        own = np.where(nearest_mode(model, modes, states) == k, log_weights, -np.inf)
        if np.isfinite(own).any():
            in_modes.append((own, states[choose_by_weight(own, _MODE_MELTED, rng)]))
        unweighed += bool(reach[k] < _OUT_OF_REACH) and not is_weighed(own)
    reverse = melt([states for _, states in in_modes], 1)
    found += [Start(MODES, own, log_rev) for (own, _), log_rev in zip(in_modes, reverse, strict=True)]
    return Starts(
        starts=tuple(found),
        modes=len(modes.bases),
        unweighed=unweighed,
        chain_steps=steps,
        log_z_ceiling=model.log_z_ceiling,
    )


def _far_modes(bounds: Floats, reach: Floats, log_z: float) -> tuple[list[int], int]:
    """Modes to anneal chains from, the least in reach first, and how many out of reach have no place among them."""
    promising = bounds + log(np.maximum(1 - reach, 1e-300))
    weighed = (reach < _REACHED) | (promising > log_z + math.log(_MATTERS))
    ranked = [int(k) for k in np.lexsort((-promising, reach >= _OUT_OF_REACH)) if weighed[k]]
    return ranked[:_PLACES], int((reach[ranked[_PLACES:]] < _OUT_OF_REACH).sum())
