"""Candidate modes of a model, found by optimisation: independent units that may serve as bases to anneal from.

Of bits on two sides they are fixed points of the mean-field equations, from many starting points. Each has a lower
bound on log Z of its own, E[log f] + entropy. Of other units with finitely many states they are local optima of log f:
states climb block by block, every unit to its most probable state, until none changes. From each optimum chains make
some moves in the model; how often they visit each state gives independent units, whose own samples estimate the bound.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.field import MarkovRandomField
from meltpoint.kernels.sigmoid import sigmoid
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose, generator
from meltpoint.statistics.elementary import logit

_KEY = 4  # what else the evidence draws has other first numbers
_SWEEPS = 30
_LEAST_RATE = 0.01
_FIELD_WORK = 3_000_000_000  # unit pairs times sweeps, for all starting points: half a second
_LEAST_FIELD_POINTS, _MOST_FIELD_POINTS = 64, 400
_SAME = 0.05  # mean distance of rates up to which two fixed points are one mode

_CLIMB_WORK = 1_000_000  # units times starting points
_MODE_WORK = 16_000_000  # units times chains around all modes
_LEAST_POINTS, _MOST_POINTS = 8, 128
_CONSTANT_STATES = 4  # all units in one state: of ferromagnets these are the modes
_LEAST_MODES = 2
_LEAST_CHAINS, _MOST_CHAINS = 8, 64
_SMOOTHING = 0.5
_SAME_STATE = 0.02  # share of units in other states up to which two optima are one
_SAME_RATES = 0.1  # mean distance of rates; two samples of 64 chains of the same rate are 0.07 apart


@dataclass(frozen=True, eq=False)
class Modes:
    """Bases of candidate modes, best first, lower bounds on log Z (mode,), and states (look, mode, unit) of each."""

    bases: tuple[Base, ...]
    bounds: Floats
    states: States


def find_modes(
    model: Model,
    move: Callable[[States], States],
    rng: np.random.Generator,
    *,
    count: int,
    looks: int = 1,
    seed: int = 0,
) -> Modes | None:
    """Up to `count` modes with the largest bounds; None for units that are neither bits nor of finitely many states.

    `move` takes states (chain, unit) some moves on in the model; `rng` draws the `looks` states of each mode.

    >>> from meltpoint.models.rbm import RBM
    >>> rbm = RBM([[9.0], [9.0]], [-4.0, -4.0], [-9.0])
    >>> modes = find_modes(rbm, lambda states: states, np.random.default_rng(0), count=4)
    >>> [sigmoid(base.biases[0]).round(1).tolist() for base in modes.bases]
    [[1.0, 1.0], [0.0, 0.0]]
    """
    two, mrf = model.bipartite, model.undirected.mrf
    if two is not None:
        return _fixed_points(model, two, move, rng, count, looks, seed)
    if mrf is None or any(block.unit.n_states is None for block in mrf.unit_blocks):
        return None
    return _local_optima(model, mrf, move, rng, count, looks, seed)


def nearest_mode(model: Model, modes: Modes, states: States) -> NDArray[np.integer]:
    """The mode (state,) under which each state (state, unit) is most probable: modes share the space."""
    return np.argmax([model.path(base).log_prob_base(states) for base in modes.bases], axis=0)


def _apart(ranked: NDArray[np.integer], differ: Callable[[int, int], bool], count: int) -> list[int]:
    """The first `count` points in this order that differ from all before them."""
    kept: list[int] = []
    for k in ranked.tolist():
        if len(kept) < count and all(differ(k, other) for other in kept):
            kept.append(k)
    return kept


# Bits on two sides.


def _fixed_points(
    model: Model,
    two: Bipartite,
    move: Callable[[States], States],
    rng: np.random.Generator,
    count: int,
    looks: int,
    seed: int,
) -> Modes:
    even = _starting_rates(two, seed)
    for _ in range(_SWEEPS):  # the bound rises with each
        even = two.even_given_odd(two.odd_given_even(even))
    odd = two.odd_given_even(even)
    bounds = two.mean_field_bound(even, odd)
    # Stable: which of equals comes first depends on the processor otherwise.
    ranked = np.argsort(-bounds, kind="stable")
    kept = _apart(ranked, lambda k, other: np.abs(even[k] - even[other]).mean() >= _SAME, count)
    bases = []
    for number, k in enumerate(kept, start=1):
        sides = [
            [logit(np.clip(rates[k, part], _LEAST_RATE, 1 - _LEAST_RATE)) for part in slices]
            for rates, slices in ((even, two.even_slices), (odd, two.odd_slices))
        ]
        # Rates are those of bits; biases are in the terms of the units.
        layers = [sides[j % 2][j // 2] / unit.scale for j, unit in enumerate(model.undirected.units)]
        bases.append(Base(f"mode {number}", tuple(layers)))
    rates = np.tile(even[kept], (looks, 1))
    states = move((rng.random(rates.shape) < rates).astype(np.uint8))
    return Modes(tuple(bases), bounds[kept], states.reshape(looks, len(kept), -1))


def _starting_rates(two: Bipartite, seed: int) -> Floats:
    """Even rates (point, unit): half from single odd units, a quarter from few of them, a quarter from corners."""
    rng = generator(seed, Purpose.EVIDENCE, _KEY, 0)
    work = _SWEEPS * two.n_even * two.n_odd
    points = int(np.clip(_FIELD_WORK // work, _LEAST_FIELD_POINTS, _MOST_FIELD_POINTS))
    units = rng.permutation(two.n_odd)[: points // 4]
    single = np.zeros((len(units), two.n_odd))
    single[np.arange(len(units)), units] = 1.0
    typical = two.odd_given_even(sigmoid(two.even_bias)[np.newaxis])
    few = rng.random((points // 4, two.n_odd)) < rng.random((points // 4, 1)) ** 2
    corners = (rng.random((points // 4, two.n_even)) < rng.random((points // 4, 1))).astype(np.float64)
    ends = np.stack([np.zeros(two.n_even), np.ones(two.n_even), sigmoid(two.even_bias)])
    odd = np.concatenate([single, np.maximum(typical, single), few])
    return np.concatenate([two.even_given_odd(odd), corners, ends])


# Graphs.


def _local_optima(
    model: Model,
    mrf: MarkovRandomField,
    move: Callable[[States], States],
    rng_of_looks: np.random.Generator,
    count: int,
    looks: int,
    seed: int,
) -> Modes:
    rng = generator(seed, Purpose.EVIDENCE, _KEY, 1)
    chains = int(np.clip(_MODE_WORK // (_LEAST_MODES * mrf.n_units), _LEAST_CHAINS, _MOST_CHAINS))
    count = min(count, max(_LEAST_MODES, _MODE_WORK // (chains * mrf.n_units)))
    points = climb(mrf, _starting_states(mrf, rng))[:, : mrf.n_state]
    ranked = np.argsort(-mrf.log_f(points), kind="stable")
    tops = _apart(ranked, lambda k, other: (points[k] != points[other]).mean() > _SAME_STATE, count)
    moved = move(np.repeat(points[tops], chains, axis=0)).reshape(len(tops), chains, -1)
    bases, own_bounds = zip(*(_fit(model, mrf, states, rng) for states in moved), strict=True)
    bounds = np.array(own_bounds)
    units = model.undirected.units
    rates = [
        np.concatenate([np.ravel(unit.mean(bias)) for unit, bias in zip(units, base.biases, strict=True)])
        for base in bases
    ]
    # Optima in one valley have the same chains.
    ranked = np.argsort(-bounds, kind="stable")
    kept = _apart(ranked, lambda k, other: np.abs(rates[k] - rates[other]).mean() > _SAME_RATES, count)
    chosen = np.stack([rng_of_looks.permutation(chains)[:looks] for _ in kept], axis=1)
    return Modes(tuple(bases[k] for k in kept), bounds[kept], moved[kept, chosen])


def climb(mrf: MarkovRandomField, units: States) -> States:
    """Local optima (point, unit) above states of all units: no unit has a more probable state given the others."""
    units = units.copy()
    for _ in range(_SWEEPS):
        before = units.copy()
        for block in mrf.unit_blocks:
            inputs = mrf.inputs(block, units)
            best = np.argmax(inputs, axis=-1) if block.unit.input_shape else inputs > 0
            units[:, block.columns] = best
        if np.array_equal(units, before):
            break
    return units


def _starting_states(mrf: MarkovRandomField, rng: np.random.Generator) -> States:
    """States (point, unit) of all units: constant ones, uniform ones, and ones with a preferred state."""
    points = int(np.clip(_CLIMB_WORK // mrf.n_units, _LEAST_POINTS, _MOST_POINTS))
    units = np.zeros((points, mrf.n_units), mrf.dtype)
    preference = np.concatenate([np.ones(_CONSTANT_STATES), rng.random(points - _CONSTANT_STATES)])
    preference[_CONSTANT_STATES : points // 2] = 0.0
    state = np.arange(points)
    for block in mrf.unit_blocks:
        q = block.unit.n_states or 1
        drawn = rng.integers(0, q, (points, block.size))
        preferred = rng.random(drawn.shape) < preference[:, np.newaxis]
        units[:, block.columns] = np.where(preferred, state[:, np.newaxis] % q, drawn)
    return units


def _fit(
    model: Model, mrf: MarkovRandomField, states: States, rng: np.random.Generator
) -> tuple[Base, float]:
    """A base fitted to states (chain, unit), and its lower bound on log Z."""
    undirected = model.undirected
    units = mrf.with_summed_out_drawn(states, lambda count: 1 - rng.random((len(states), count)))
    layers = zip(undirected.units, undirected.by_layer(units), strict=True)
    base = Base("mode", tuple(unit.bias_from_sample(own, _SMOOTHING) for unit, own in layers))
    path = undirected.path(base)
    inputs = undirected.base_inputs(undirected.with_biases(base))
    drawn = np.empty_like(states)
    for block, own in zip(mrf.state_blocks, inputs, strict=False):
        uniforms = 1 - rng.random((len(states), block.size))
        drawn[:, block.columns] = block.unit.draw(np.broadcast_to(own, (len(states), *own.shape)), uniforms)
    gained = path.log_f(1.0, drawn) - path.log_f(0.0, drawn)
    return base, float(gained.mean()) + path.log_z_base + mrf.log_constant
