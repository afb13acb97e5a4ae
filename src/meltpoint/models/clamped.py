"""log f of visible states where hidden units stay in the state: by adding up their states, or by annealing them.

Visible units are the first columns. All others, also those that a sweep sums out, are hidden.
"""

import math

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import GeneratorDraws, Segment
from meltpoint.annealing.field import BlockPath
from meltpoint.annealing.path import BlockGibbs, anneal_reference
from meltpoint.layers.unit import Floats, States
from meltpoint.models.graph_fields import GraphField
from meltpoint.statistics.log_space import log_sum_exp

_MOVES = 25  # sweeps of a chain: as many importance samples are saved
_LEAST_CHAINS = 8  # fewest chains whose halves and quarters can be compared
_LOOKS = 16  # states whose inputs are averaged for the independent units that a chain starts from
_REFINEMENTS = 3
_GIBBS = BlockGibbs(skips_clamped=True)


def hidden_states(field: GraphField, n_visible: int) -> float:
    """How many states the hidden units of the state have."""
    counts = [
        (block.unit.n_states or math.inf, int((np.asarray(block.columns) >= n_visible).sum()))
        for block in field.state_blocks
    ]
    return math.exp(min(700.0, sum(size * math.log(q) for q, size in counts)))


def enumerate_hidden(field: GraphField, visible: States) -> Floats:
    """log f (example,) of visible states (example, visible unit), all states of the others added up."""
    n = visible.shape[1]
    cardinalities = np.ones(field.n_state, np.int64)
    for block in field.state_blocks:
        cardinalities[block.columns] = block.unit.n_states or 0
    hidden = np.indices(cardinalities[n:].tolist()).reshape(field.n_state - n, -1).T.astype(visible.dtype)
    states = np.concatenate(
        [np.repeat(visible, len(hidden), axis=0), np.tile(hidden, (len(visible), 1))], axis=1
    )
    return log_sum_exp(field.log_f(states).reshape(len(visible), -1), axis=1)


def weigh_hidden(
    field: GraphField, visible: States, generators: list[np.random.Generator], samples: int
) -> Floats:
    """Log weights (example, chain), each unbiased for f(v): hidden units annealed with the visible ones clamped.

    Chains go from independent units, whose inputs are those of the model on average over states near them, to the
    model. Each example draws with its own generator.
    """
    chains = max(_LEAST_CHAINS, samples // _MOVES)
    clamped = np.arange(field.n_state) < visible.shape[1]
    base = _independent_hidden(field, visible, generators, clamped)
    path = BlockPath(field, tuple(np.repeat(own, chains, axis=0) for own in base), _GIBBS)
    heat = Segment(np.linspace(0, 1, _MOVES + 1), clamped)
    start, draws = _spread(field, visible, chains), GeneratorDraws(generators, chains)
    _, log_weights = anneal_reference(path, heat, start, draws)
    log_z_base = np.zeros(len(visible))
    for block, own in zip(field.unit_blocks, base, strict=True):
        hidden = np.asarray(block.columns) >= visible.shape[1]
        log_z_base += block.unit.log_partition(own[:, hidden]).sum(axis=1)
    return log_weights.reshape(len(visible), chains) + log_z_base[:, np.newaxis] + field.log_constant


def _spread(field: GraphField, visible: States, chains: int) -> States:
    """States (example and chain, unit of the state), hidden ones in state 0."""
    state = np.zeros((len(visible) * chains, field.n_state), visible.dtype)
    state[:, : visible.shape[1]] = np.repeat(visible, chains, axis=0)
    return state


def _independent_hidden(
    field: GraphField,
    visible: States,
    generators: list[np.random.Generator],
    clamped: NDArray[np.bool_],
) -> tuple[Floats, ...]:
    """Inputs (example, unit, …) of a base of independent hidden units, block by block; those of visible ones are 0."""
    draws, state = GeneratorDraws(generators, _LOOKS), _spread(field, visible, _LOOKS)
    base = tuple(np.zeros((len(visible), b.size, *b.unit.input_shape)) for b in field.unit_blocks)
    for _ in range(_REFINEMENTS):
        path = BlockPath(field, tuple(np.repeat(own, _LOOKS, axis=0) for own in base), _GIBBS)
        state = path.draw_base(state, draws, clamped)
        units = field.with_summed_out_drawn(state, draws.uniforms)
        base = tuple(
            field.inputs(block, units).reshape(len(visible), _LOOKS, *own.shape[1:]).mean(axis=1)
            for block, own in zip(field.unit_blocks, base, strict=True)
        )
        for block, own in zip(field.state_blocks, base, strict=False):
            own[:, clamped[block.columns]] = 0.0
    return base
