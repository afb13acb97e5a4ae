"""A Markov random field in blocks: all that the annealing loop asks of a target.

The *state* is what a chain keeps, in one or more blocks. One further block may be summed out; it is drawn anew at the
beginning of every sweep and forgotten after it. In arrays of all units (chain, unit) its columns follow the state's.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.layers.unit import Bits, Floats
from meltpoint.models.blocks import Sweep, UnitBlock

if TYPE_CHECKING:
    from meltpoint.models.bipartite import Bipartite
    from meltpoint.models.factor_tables import FactorTables
    from meltpoint.models.pairwise import Pairwise
    from meltpoint.models.two_layer import TwoLayer


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

    @abstractmethod
    def parameters(self) -> tuple[Floats, ...]:
        """All parameters: fields with the same ones are the same field."""

    @property
    def log_z_ceiling(self) -> float:
        """An upper bound on log Z that needs no chains and is far from tight; infinite where none is known."""
        return math.inf

    @property
    def draws_in_rows(self) -> bool:
        """Whether each layer begins a new row of random numbers, because whole vectors of units are drawn together."""
        return False

    @property
    def potts_layer(self) -> "TwoLayer | None":
        """The same field as Potts sites with hidden bits that are summed out, if it is one."""
        return None

    @property
    def bipartite(self) -> "Bipartite | None":
        """The same field as Bernoulli units on two sides, if it is one."""
        return None

    @property
    def pairwise(self) -> "Pairwise | None":
        """The same field, but for a constant, as a graph of sites of one number of states, if it is one."""
        return None

    @property
    def factor_tables(self) -> "FactorTables | None":
        """The same field, but for a constant, as tables of factors of any order, if it is given so."""
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

    @property
    def sweep(self) -> Sweep:
        """The forward sweep."""
        return Sweep(tuple(range(len(self.state_blocks))))

    def with_summed_out(self, state: Bits) -> Bits:
        """All units (chain, unit) of a state (chain, unit of the state), those that are summed out in state 0."""
        if self.summed_out is None:
            return state
        rest = np.zeros((len(state), self.summed_out.size), self.summed_out.unit.dtype)
        return np.concatenate([state, rest], axis=1)

    def with_summed_out_drawn(self, state: Bits, uniforms: Callable[[int], NDArray[np.floating]]) -> Bits:
        """The same with those that are summed out drawn, by uniforms (chain, so many) in (0, 1]."""
        units, block = self.with_summed_out(state), self.summed_out
        if block is not None:
            units[:, block.columns] = block.unit.draw(self.inputs(block, units), uniforms(block.size))
        return units

    def state_means(self, state: Bits, generator: np.random.Generator) -> NDArray[Any]:
        """Probabilities of the state's units, given something redrawn; by default the states (chain, unit) themselves.

        Probabilities have less noise than draws: a unit that is rarely on keeps its small rate. They are what a unit's
        `bias_from_sample` takes.
        """
        return state

    def log_f(self, state: Bits) -> Floats:
        """Log unnormalised probability (chain,) of states, with its constant."""
        units = self.with_summed_out(state)
        log_f = self.log_f_of_state(units) + self.log_constant
        if self.summed_out is None:
            return log_f
        return log_f + self.summed_out.unit.log_partition(self.inputs(self.summed_out, units)).sum(axis=1)
