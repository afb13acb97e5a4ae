"""log f of visible states where hidden units stay in the state: by adding up their states, or by annealing them.

Visible units are the first columns. All others, also those that a sweep sums out, are hidden.
"""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import UnitBlock
from meltpoint.errors import Progress
from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.binary_field import BinaryField
from meltpoint.models.factor_field import FactorField
from meltpoint.statistics.log_space import log_sum_exp

_MOVES = 25  # sweeps of a chain: as many importance samples are saved
_LEAST_CHAINS = 8  # fewest chains whose halves and quarters can be compared
_LOOKS = 16  # states whose inputs are averaged for the independent units that a chain starts from
_REFINEMENTS = 3
_AT_ONCE = 1 << 16  # states added up in one go


def hidden_states(field: BinaryField | FactorField, n_visible: int) -> float:
    """How many states the hidden units of the state have."""
    counts = [
        (block.unit.n_states or math.inf, int((np.asarray(block.columns) >= n_visible).sum()))
        for block in field.state_blocks
    ]
    return math.exp(min(700.0, sum(size * math.log(q) for q, size in counts)))


def enumerate_hidden(field: BinaryField | FactorField, visible: Bits, progress: Progress | None) -> Floats:
    """log f (example,) of visible states (example, visible unit), all states of the others added up."""
    n = visible.shape[1]
    cardinalities = np.ones(field.n_state, np.int64)
    for block in field.state_blocks:
        cardinalities[block.columns] = block.unit.n_states or 0
    hidden = np.indices(cardinalities[n:].tolist()).reshape(field.n_state - n, -1).T.astype(visible.dtype)
    log_f = np.empty(len(visible))
    step = max(1, _AT_ONCE // len(hidden))
    for low in range(0, len(visible), step):
        part = visible[low : low + step]
        states = np.concatenate(
            [np.repeat(part, len(hidden), axis=0), np.tile(hidden, (len(part), 1))], axis=1
        )
        log_f[low : low + step] = log_sum_exp(field.log_f(states).reshape(len(part), -1), axis=1)
        if progress:
            progress("unnormalised probabilities", low + len(part), len(visible))
    return log_f


def weigh_hidden(
    field: BinaryField | FactorField, visible: Bits, generators: list[np.random.Generator], samples: int
) -> Floats:
    """Log weights (example, chain), each unbiased for f(v): hidden units annealed with the visible ones clamped.

    Chains go from independent units, whose inputs are those of the model on average over states near them, to the
    model. Each example draws with its own generator.
    """
    chains = max(_LEAST_CHAINS, samples // _MOVES)
    walk = _Walk(field, visible.shape[1], generators)
    base = walk.base(visible)
    units = walk.spread(visible, chains)
    log_weights = np.zeros(len(units))
    betas = np.linspace(0, 1, _MOVES + 1)
    for beta, following in itertools.pairwise(betas):
        walk.sweep(units, base, beta, chains)
        log_base = walk.log_base(units, base, chains)
        log_weights += (following - beta) * (field.log_f_of_all(units) - log_base)
    log_weights = log_weights.reshape(len(visible), chains) + walk.log_z_base(base)[:, np.newaxis]
    return log_weights + field.log_constant


class _Walk:
    """Hidden units of a field with clamped visible ones, and the examples' generators."""

    def __init__(
        self, field: BinaryField | FactorField, n_visible: int, generators: list[np.random.Generator]
    ) -> None:
        self.field, self.generators = field, generators
        parts = [(block, np.asarray(block.columns)) for block in field.unit_blocks]
        self.blocks = [
            (block, columns, columns >= n_visible) for block, columns in parts if (columns >= n_visible).any()
        ]

    def spread(self, visible: Bits, chains: int) -> Bits:
        """All units (example and chain, unit), hidden ones in state 0."""
        units = np.zeros((len(visible) * chains, self.field.n_units), visible.dtype)
        units[:, : visible.shape[1]] = np.repeat(visible, chains, axis=0)
        return units

    def base(self, visible: Bits) -> list[Floats]:
        """Inputs (example, unit, …) of independent hidden units, for each block that has any."""
        base = [
            np.zeros((len(visible), int(hidden.sum()), *block.unit.input_shape))
            for block, _, hidden in self.blocks
        ]
        for _ in range(_REFINEMENTS):
            units = self.spread(visible, _LOOKS)
            self.sweep(units, base, 0.0, _LOOKS)
            base = [
                self._inputs(block, hidden, units).reshape(len(visible), _LOOKS, *own.shape[1:]).mean(axis=1)
                for (block, _, hidden), own in zip(self.blocks, base, strict=True)
            ]
        return base

    def sweep(self, units: Bits, base: list[Floats], beta: float, chains: int) -> None:
        """Redraw hidden units in place, block after block."""
        for (block, columns, hidden), own in zip(self.blocks, base, strict=True):
            inputs = (1 - beta) * np.repeat(own, chains, axis=0)
            if beta > 0:
                inputs = inputs + beta * self._inputs(block, hidden, units)
            size = int(hidden.sum())
            uniforms = np.concatenate([1 - g.random((chains, size)) for g in self.generators])
            units[:, columns[hidden]] = block.unit.draw(inputs, uniforms)

    def log_base(self, units: Bits, base: list[Floats], chains: int) -> Floats:
        """Log unnormalised probability (example and chain,) of the hidden units under the base."""
        log_f = np.zeros(len(units))
        for (block, columns, hidden), own in zip(self.blocks, base, strict=True):
            inputs = np.repeat(own, chains, axis=0)
            log_f += block.unit.log_weight(units[:, columns[hidden]], inputs).sum(axis=1)
        return log_f

    def log_z_base(self, base: list[Floats]) -> Floats:
        """Log normaliser (example,) of the base."""
        parts = [
            block.unit.log_partition(own).sum(axis=1)
            for (block, _, _), own in zip(self.blocks, base, strict=True)
        ]
        return np.sum(parts, axis=0)

    def _inputs(self, block: UnitBlock, hidden: NDArray[np.bool_], units: Bits) -> Floats:
        return self.field.inputs(block, units)[:, hidden]
