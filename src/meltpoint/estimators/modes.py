"""Candidate modes of a model, found by optimisation, and groups of them as bases to anneal from.

Of bits on two sides candidates are drawn from fixed points of the mean-field equations. Of other units they are local
optima of log f: states climb block by block, every unit to its most probable state (or mean), until none changes.

A phase of a wide model has far more optima than can be listed: thirty independent units of two states multiply them by
2^30. So what counts is not an optimum but where chains go from it. Each candidate makes some moves in the model, and
candidates are grouped by the conditional means on the way; a group's means make independent units, a base for it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.field import MarkovRandomField
from meltpoint.kernels.sigmoid import sigmoid
from meltpoint.layers.unit import Floats, States
from meltpoint.models.bipartite import Bipartite
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose, generator

_KEY = 4  # what else the evidence draws has other first numbers
_SWEEPS = 30
_FIELD_WORK = 3_000_000_000  # unit pairs times sweeps, for all starting points: half a second
_LEAST_FIELD_POINTS, _MOST_FIELD_POINTS = 64, 400
_SAME = 0.05  # mean distance of rates up to which two fixed points are one mode

_CLIMB_WORK = 1_000_000  # units times starting points
_LEAST_POINTS, _MOST_POINTS = 8, 256
_CONSTANT_STATES = 4  # all units in one state: of ferromagnets these are the modes
_SAME_STATE = 0.02  # share of units in other states up to which two optima are one
_SMOOTHING = 0.01  # examples added in every state, for each in a group
_CENTRING = 10  # rounds of 2-means


def find_modes(model: Model, *, count: int, seed: int = 0) -> States | None:
    """States (mode, unit of the state) of up to `count` modes, most probable first; None without blocks of units.

    >>> from meltpoint.models.rbm import RBM
    >>> find_modes(RBM([[20.0], [20.0]], [-9.0, -9.0], [-20.0]), count=4)
    array([[1, 1],
           [0, 0]], dtype=uint8)
    """
    two, mrf = model.bipartite, model.undirected.mrf
    if two is not None:
        return _fixed_points(two, count, seed)
    return None if mrf is None else _local_optima(mrf, count, seed)


def mean_states(mrf: MarkovRandomField, states: States, rng: np.random.Generator) -> Floats:
    """Probabilities (chain, unit, state) of all units given the rest, for states (chain, unit of the state).

    Those that are summed out are drawn first. States of units other than bits and Potts sites, such as real numbers,
    are themselves in place of the probability of state 0.
    """
    units = mrf.with_summed_out_drawn(states, lambda count: 1 - rng.random((len(states), count)))
    width = max(block.unit.n_states or 1 for block in mrf.unit_blocks)
    means = np.zeros((*units.shape, width))
    for block in mrf.unit_blocks:
        unit, inputs = block.unit, mrf.inputs(block, units)
        if unit.bit is not None:
            means[:, block.columns, 1] = (unit.mean(inputs) - unit.offset) / unit.scale
            means[:, block.columns, 0] = 1 - means[:, block.columns, 1]
        elif unit.counts_states:
            means[:, block.columns, : unit.n_states] = unit.mean(inputs)
        else:
            means[:, block.columns, 0] = units[:, block.columns]
    return means


def base_of_means(model: Model, means: Floats, name: str) -> Base:
    """Independent units that are distributed as in a sample of means (example, unit, state) of all units."""
    biases = []
    for unit, (columns,) in zip(
        model.undirected.units, model.undirected.by_layer(np.arange(means.shape[1])[np.newaxis]), strict=True
    ):
        states: int | slice = slice(unit.n_states) if unit.counts_states else 0
        if unit.bit is not None:
            states = 1
        biases.append(unit.bias_from_sample(means[:, columns, states], _SMOOTHING * len(means)))
    return Base(name, tuple(biases))


def split_in_two(points: Floats) -> NDArray[np.bool_]:
    """Which points (point, coordinate) belong to the second of two groups, by 2-means from two far ones."""

    def distances(centre: Floats) -> Floats:
        return np.square(points - centre).sum(axis=1)

    first = points[np.argmax(distances(points.mean(axis=0)))]
    second = points[np.argmax(distances(first))]
    nearer = distances(second) < distances(first)
    for _ in range(_CENTRING):
        if nearer.all() or not nearer.any():  # the points are equal, but for rounding
            break
        first, second = points[~nearer].mean(axis=0), points[nearer].mean(axis=0)
        nearer = distances(second) < distances(first)
    return nearer


def groups_of(points: Floats, count: int) -> Sequence[NDArray[np.integer]]:
    """Up to `count` groups of points (point, coordinate), by number: the one that spreads most is split in turn.

    >>> [group.tolist() for group in groups_of(np.array([[0.0], [9.0], [1.0], [8.0]]), 2)]
    [[0, 2], [1, 3]]
    """
    groups = [np.arange(len(points))]
    while len(groups) < count:
        spreads = [float(np.square(points[g] - points[g].mean(axis=0)).sum()) for g in groups]
        group = groups[int(np.argmax(spreads))]
        second = split_in_two(points[group])
        if second.all() or not second.any():
            break
        groups = [own for own in groups if own is not group]
        groups += [group[~second], group[second]]
    return groups


def _apart(ranked: NDArray[np.integer], differ: Callable[[int, int], bool], count: int) -> list[int]:
    """The first `count` points in this order that differ from all before them."""
    kept: list[int] = []
    for k in ranked.tolist():
        if len(kept) < count and all(differ(k, other) for other in kept):
            kept.append(k)
    return kept


# States on two sides.


def _fixed_points(two: Bipartite, count: int, seed: int) -> States:
    even = _starting_rates(two, seed)
    for _ in range(_SWEEPS):  # the bound rises with each
        even = two.even_given_odd(two.odd_given_even(even))
    bounds = two.mean_field_bound(even, two.odd_given_even(even))
    # Stable: which of equals comes first depends on the processor otherwise.
    ranked = np.argsort(-bounds, kind="stable")
    kept = _apart(ranked, lambda k, other: np.abs(even[k] - even[other]).mean() >= _SAME, count)
    rng = generator(seed, Purpose.EVIDENCE, _KEY, 2)
    return (rng.random((len(kept), even.shape[1])) < even[kept]).astype(np.uint8)


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


# Other units.


def _local_optima(mrf: MarkovRandomField, count: int, seed: int) -> States:
    units = climb(mrf, _starting_states(mrf, generator(seed, Purpose.EVIDENCE, _KEY, 1)))
    states = units[:, : mrf.n_state]
    ranked = np.argsort(-mrf.log_f(states), kind="stable")
    finite = np.ones(units.shape[1], np.bool_)
    for block in mrf.unit_blocks:
        finite[block.columns] = block.unit.n_states is not None
    compared = units[:, finite] if finite.any() else states
    kept = _apart(ranked, lambda k, other: (compared[k] != compared[other]).mean() > _SAME_STATE, count)
    return states[kept]


def climb(mrf: MarkovRandomField, units: States) -> States:
    """Local optima (point, unit) above states of all units: no unit has a more probable state given the others."""
    units = units.copy()
    for _ in range(_SWEEPS):
        before = units.copy()
        for block in mrf.unit_blocks:
            unit, inputs = block.unit, mrf.inputs(block, units)
            if unit.n_states is None:
                units[:, block.columns] = unit.mean(inputs)
            else:
                shape = (len(units), block.size)
                weights = [unit.log_weight(np.full(shape, k), inputs) for k in range(unit.n_states)]
                units[:, block.columns] = np.argmax(weights, axis=0)
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
