"""A Markov random field in blocks, and the path from independent units to it.

The *state* is what a chain keeps, in one or more blocks. One further block may be summed out; it is drawn anew at the
beginning of every sweep and forgotten after it. In arrays of all units (chain, unit) its columns follow the state's.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Draws, UnitBlock
from meltpoint.annealing.path import BlockGibbs, Path, Transition
from meltpoint.layers.unit import Floats, States


class MarkovRandomField(ABC):
    """Units in blocks, with an unnormalised probability f and the units' inputs given the rest."""

    log_constant: float = 0.0
    """Part of log f that no state changes. Paths leave it out, log Z and `log_f` have it."""

    @property
    @abstractmethod
    def state_blocks(self) -> tuple[UnitBlock, ...]:
        """The blocks of the state, in the order in which a sweep redraws them."""

    @property
    def summed_out(self) -> UnitBlock | None:
        """The block that is not kept, if there is one."""
        return None

    @abstractmethod
    def inputs(self, block: UnitBlock, units: NDArray[Any]) -> Floats:
        """Inputs (chain, unit of the block, *input_shape) given the states of all other units (chain, unit).

        Biases are included.
        """

    @abstractmethod
    def log_f_of_state(self, units: NDArray[Any]) -> Floats:
        """The terms (chain,) of log f without a unit that is summed out, and without the constant."""

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound on log Z that needs no chains and is far from tight; infinite where none is known."""
        return math.inf

    @property
    def draws_in_rows(self) -> bool:
        """Whether each layer begins a new row of random numbers, because whole vectors of units are drawn together."""
        return False

    @property
    def graph(self) -> Any:  # noqa: ANN401 a field of `models.graph_fields`, which is built on this
        """The same field as the graph kernels run it: a `PairField` or a `FactorField`; None if they do not."""
        return None

    @property
    def unit_blocks(self) -> tuple[UnitBlock, ...]:
        """All blocks: those of the state, then the one that is summed out."""
        return self.state_blocks if self.summed_out is None else (*self.state_blocks, self.summed_out)

    @property
    def n_state(self) -> int:
        """Units of the state."""
        return sum(block.size for block in self.state_blocks)

    @property
    def n_units(self) -> int:
        """All units."""
        return sum(block.size for block in self.unit_blocks)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What states (chain, unit of the state) are kept in."""
        return np.result_type(*(block.unit.dtype for block in self.state_blocks))

    @property
    def smaller_side(self) -> float:
        """Units of two states with as many states as must be enumerated for the exact log Z; infinite for reals."""
        units = sum(block.size * math.log2(block.unit.n_states or math.inf) for block in self.state_blocks)
        return math.ceil(units) if units < math.inf else units

    @property
    def enumerated(self) -> "MarkovRandomField":
        """The same field with the state that is enumerated for the exact log Z."""
        return self

    def path_from(self, base: tuple[Floats, ...]) -> "BlockPath":
        """The straight path from independent units with these inputs, block by block."""
        return BlockPath(self, base)

    def with_summed_out(self, state: States) -> States:
        """All units (chain, unit) of a state (chain, unit of the state), those that are summed out in state 0."""
        if self.summed_out is None:
            return state
        rest = np.zeros((len(state), self.summed_out.size), self.summed_out.unit.dtype)
        return np.concatenate([state, rest], axis=1)

    def with_summed_out_drawn(self, state: States, uniforms: Callable[[int], NDArray[np.floating]]) -> States:
        """The same with those that are summed out drawn, by uniforms (chain, so many) in (0, 1]."""
        units, block = self.with_summed_out(state), self.summed_out
        if block is not None:
            units[:, block.columns] = block.unit.draw(self.inputs(block, units), uniforms(block.size))
        return units

    def state_means(self, state: States, generator: np.random.Generator) -> NDArray[Any]:
        """Probabilities of the state's units, given something redrawn; by default the states (chain, unit) themselves.

        Probabilities have less noise than draws: a unit that is rarely on keeps its small rate. They are what a unit's
        `bias_from_sample` takes.
        """
        return state

    def log_f(self, state: States) -> Floats:
        """Log unnormalised probability (chain,) of states, with its constant."""
        units = self.with_summed_out(state)
        log_f = self.log_f_of_state(units) + self.log_constant
        if self.summed_out is None:
            return log_f
        return log_f + self.summed_out.unit.log_partition(self.inputs(self.summed_out, units)).sum(axis=1)


@dataclass(frozen=True, eq=False)
class BlockPath(Path):
    """f_s = f_0^(1-s) · f_1^s on all units (paper, Eq. 9), where f_0 is independent units and f_1 a field in blocks.

    `base` are the inputs of the independent units, one array for each block of the target. Inputs are linear in s.
    """

    target: MarkovRandomField
    base: tuple[Floats, ...]
    transition: Transition = field(default_factory=BlockGibbs)

    def __post_init__(self) -> None:
        for name in ("n_state", "dtype", "log_constant", "draws_in_rows"):
            object.__setattr__(self, name, getattr(self.target, name))

    @property
    def log_z_base(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Log normaliser of the base over all units, exact."""
        return sum(
            float(block.unit.log_partition(inputs).sum())
            for block, inputs in zip(self.target.unit_blocks, self.base, strict=True)
        )

    def inputs(self, s: float, k: int, units: NDArray[Any]) -> Floats:
        """Inputs (chain, unit of block k, *input_shape) at s given all other units (chain, unit)."""
        return (1 - s) * self.base[k] + s * self.target.inputs(self.target.unit_blocks[k], units)

    def log_f(self, s: float, state: States) -> Floats:
        """Log f_s (chain,) of states; what is summed out is summed out."""
        units = self.target.with_summed_out(state)
        log_f = s * self.target.log_f_of_state(units)
        return self._add_base(log_f, 1 - s, state) + self._log_summed_out(s, units)

    def _add_base(self, log_f: Floats, share: float, state: States) -> Floats:
        """The sum (chain,) with a share of the base's log f of the units of the state."""
        for block, inputs in zip(self.target.state_blocks, self.base, strict=False):
            log_f = log_f + share * block.unit.log_weight(state[:, block.columns], inputs).sum(axis=1)
        return log_f

    def _log_summed_out(self, s: float, units: NDArray[Any]) -> Floats | float:
        block = self.target.summed_out
        if block is None:
            return 0.0
        return block.unit.log_partition(self.inputs(s, len(self.target.state_blocks), units)).sum(axis=1)

    def draw_base(self, state: States, draws: Draws, clamped: NDArray[np.bool_] | None = None) -> States:
        return self.transition.move(self, 0.0, state, draws, clamped)

    def log_prob_base(self, states: States) -> Floats:
        n = states.shape[1]
        state = np.zeros((len(states), self.n_state), self.dtype)
        state[:, :n] = states
        log_prob = np.zeros(state.shape)
        for block, inputs in zip(self.target.state_blocks, self.base, strict=False):
            log_weight = block.unit.log_weight(state[:, block.columns], inputs)
            log_prob[:, block.columns] = log_weight - block.unit.log_partition(inputs)
        return log_prob[:, :n].sum(axis=1)


@dataclass(frozen=True, eq=False)
class BrokenLine(BlockPath):
    """A path through knots, geometric between neighbours: the base, then fields with the target's blocks, the target.

    `at` (knot,) says where the fields between lie, in ascending order, strictly between 0 and 1.
    """

    knots: tuple[MarkovRandomField, ...] = ()
    at: tuple[float, ...] = ()

    def _between(self, s: float) -> tuple[float, int]:
        """How far s lies from one knot to the next, and the number of the first; the base is knot 0."""
        edges = np.array([0.0, *self.at, 1.0])
        k = min(int(np.searchsorted(edges, s, side="right")) - 1, len(edges) - 2)
        return float((s - edges[k]) / (edges[k + 1] - edges[k])), k

    def _field(self, knot: int) -> MarkovRandomField:
        return (*self.knots, self.target)[knot - 1]

    def inputs(self, s: float, k: int, units: NDArray[Any]) -> Floats:
        share, knot = self._between(s)
        above = self._field(knot + 1)
        upper = above.inputs(above.unit_blocks[k], units)
        if knot == 0:
            return (1 - share) * self.base[k] + share * upper
        below = self._field(knot)
        return (1 - share) * below.inputs(below.unit_blocks[k], units) + share * upper

    def log_f(self, s: float, state: States) -> Floats:
        share, knot = self._between(s)
        units = self.target.with_summed_out(state)
        log_f = share * self._field(knot + 1).log_f_of_state(units)
        if knot:
            log_f = log_f + (1 - share) * self._field(knot).log_f_of_state(units)
        else:
            log_f = self._add_base(log_f, 1 - share, state)
        return log_f + self._log_summed_out(s, units)
