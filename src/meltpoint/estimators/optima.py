"""Candidate modes of a model on a graph: local optima of log f, and independent units fitted to chains around them.

States from many starting points climb block by block, every unit to its most probable state, until none changes. From
each optimum chains make some moves in the model; how often they visit each state gives a base of independent units. Its
lower bound on log Z, E[log f - log q], is estimated by its own samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.base import Base
from meltpoint.annealing.field import BlockPath, MarkovRandomField
from meltpoint.annealing.path import Path
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.model import Model
from meltpoint.randomness import Purpose, generator

_KEY = 4, 1  # what else the evidence draws has other numbers
_SWEEPS = 30
_WORK = 1_000_000  # units times starting points
_MODE_WORK = 16_000_000  # units times chains around all modes
_LEAST_POINTS, _MOST_POINTS = 8, 128
_CONSTANT_STATES = 4  # all units in one state: of ferromagnets these are the modes
_LEAST_MODES = 2
_LEAST_CHAINS, _MOST_CHAINS = 8, 64
_SMOOTHING = 0.5
_SAME_STATE = 0.02  # share of units in other states up to which two optima are one
_SAME_RATES = 0.1  # mean distance of rates; two samples of 64 chains of the same rate are 0.07 apart


@dataclass(frozen=True, eq=False)
class Optima:
    """Bases around local optima, best bound first, with the paths from them and lower bounds on log Z (mode,)."""

    bases: tuple[Base, ...]
    paths: tuple[Path, ...]
    bounds: Floats
    states: Bits

    def draw(self, looks: int, rng: np.random.Generator) -> Bits:
        """States (look and mode, unit) of each mode, looks apart: ends of the chains around it."""
        chosen = np.stack([rng.permutation(self.states.shape[1])[:looks] for _ in self.bases], axis=1)
        return np.concatenate([self.states[np.arange(len(self.bases)), own] for own in chosen])

    def nearest(self, states: Bits) -> NDArray[np.integer]:
        """The mode (state,) whose base makes each state (state, unit) most probable: modes share the space."""
        log_prob = [path.log_f(0.0, states) - path.log_z_base for path in self.paths]
        return np.argmax(log_prob, axis=0)


def find_optima(model: Model, move: Callable[[Bits], Bits], *, count: int, seed: int) -> Optima | None:
    """Up to `count` modes of a model whose units have finitely many states; None if they have not.

    `move` takes states (chain, unit) some moves on in the model.
    """
    mrf = model.undirected.mrf
    if mrf is None or any(block.unit.n_states is None for block in mrf.unit_blocks):
        return None
    rng = generator(seed, Purpose.EVIDENCE, *_KEY)
    chains = int(np.clip(_MODE_WORK // (_LEAST_MODES * mrf.n_units), _LEAST_CHAINS, _MOST_CHAINS))
    count = min(count, max(_LEAST_MODES, _MODE_WORK // (chains * mrf.n_units)))
    points = climb(mrf, _starting_points(mrf, rng))[:, : mrf.n_state]
    tops = points[_apart(points, np.argsort(-mrf.log_f(points), kind="stable"), count)]
    moved = move(np.repeat(tops, chains, axis=0)).reshape(len(tops), chains, -1)
    fitted = [_fit(model, states, rng) for states in moved]
    bounds = np.array([bound for _, _, bound in fitted])
    # Optima in one valley have the same chains.
    rates = [np.concatenate([np.ravel(rate) for rate in _rates(base, model)]) for base, _, _ in fitted]
    kept: list[int] = []
    for k in np.argsort(-bounds, kind="stable").tolist():
        if all(np.abs(rates[k] - rates[other]).mean() > _SAME_RATES for other in kept):
            kept.append(k)
    bases, paths, _ = zip(*(fitted[k] for k in kept), strict=True)
    return Optima(bases, paths, bounds[kept], moved[kept])


def climb(mrf: MarkovRandomField, units: Bits) -> Bits:
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


def _starting_points(mrf: MarkovRandomField, rng: np.random.Generator) -> Bits:
    """States (point, unit) of all units: constant ones, uniform ones, and ones with a preferred state."""
    points = int(np.clip(_WORK // mrf.n_units, _LEAST_POINTS, _MOST_POINTS))
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


def _apart(points: Bits, ranked: NDArray[np.integer], count: int) -> list[int]:
    """The first `count` points in this order that differ from all before them."""
    kept: list[int] = []
    for k in ranked.tolist():
        if len(kept) == count:
            break
        if not kept or ((points[kept] != points[k]).mean(axis=1) > _SAME_STATE).all():
            kept.append(k)
    return kept


def _fit(model: Model, states: Bits, rng: np.random.Generator) -> tuple[Base, Path, float]:
    """A base fitted to states (chain, unit), the path from it, and its lower bound on log Z."""
    undirected = model.undirected
    mrf = undirected.mrf
    assert mrf is not None, "its blocks were climbed"
    units = mrf.with_summed_out_drawn(states, lambda count: 1 - rng.random((len(states), count)))
    layers = undirected.by_layer(units)
    base = Base(
        "mode",
        tuple(
            unit.bias_from_sample(own, _SMOOTHING) for unit, own in zip(undirected.units, layers, strict=True)
        ),
    )
    path = undirected.path(base)
    assert isinstance(path, BlockPath), "the model has blocks"
    drawn = np.empty_like(states)
    for block, inputs in zip(mrf.state_blocks, path.base, strict=False):
        uniforms = 1 - rng.random((len(states), block.size))
        drawn[:, block.columns] = block.unit.draw(
            np.broadcast_to(inputs, (len(states), *inputs.shape)), uniforms
        )
    gained = path.log_f(1.0, drawn) - path.log_f(0.0, drawn)
    return base, path, float(gained.mean()) + path.log_z_base + mrf.log_constant


def _rates(base: Base, model: Model) -> Sequence[Floats]:
    return [
        np.asarray(unit.mean(bias)) for unit, bias in zip(model.undirected.units, base.biases, strict=True)
    ]
