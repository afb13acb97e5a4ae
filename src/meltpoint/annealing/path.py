"""Paths: families of unnormalised distributions f_s, s from 0 to 1, from a base f_0 to the model f_1.

The base can be drawn from exactly and its normaliser is known. A constant of the model is left out of every f_s. The
loop asks a path for what `Path` lists and nothing else; whatever its transition needs besides is between those two.
"""

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Draws, Segment
from meltpoint.layers.unit import Floats, States


class Transition(Protocol):
    """A move that leaves every f_s of a path invariant."""

    def move(
        self,
        path: Any,  # noqa: ANN401 each kind of move asks something else of its path
        s: float,
        state: States,
        draws: Draws,
        clamped: NDArray[np.bool_] | None = None,
    ) -> States:
        """States (chain, unit) one move later at s; units that are clamped (unit,) keep their value."""
        ...

    def reversed(self) -> "Transition":
        """The move T~ with f_s(x) T(x → y) = f_s(y) T~(y → x); a reversible move is its own reversal."""
        ...


@dataclass(frozen=True)
class BlockGibbs:
    """Redraws the blocks of a field one after the other, the block that is summed out before all others.

    p(h | x) T(x → y | h) has the reversal p(h | y) T~(y → x | h): the blocks of the state in the opposite order, again
    after h. A sweep with one block of the state is its own reversal. At s = 0 it is an exact draw of independent units.
    `skips_clamped` skips blocks whose units are all clamped; the compiled kernels draw them and discard the draw.
    """

    backwards: bool = False
    skips_clamped: bool = False

    def reversed(self) -> Self:
        return replace(self, backwards=not self.backwards)

    def move(
        self,
        path: Any,  # noqa: ANN401 a path with the inputs of its target's blocks
        s: float,
        state: States,
        draws: Draws,
        clamped: NDArray[np.bool_] | None = None,
    ) -> States:
        target = path.target
        units = target.with_summed_out(state).copy()
        order = list(range(len(target.state_blocks)))
        if target.summed_out is not None:
            inputs = path.inputs(s, len(order), units)
            units[:, target.summed_out.columns] = draws.units(target.summed_out, inputs)
        for k in reversed(order) if self.backwards else order:
            block = target.state_blocks[k]
            if self.skips_clamped and clamped is not None and clamped[block.columns].all():
                continue
            drawn = draws.units(block, path.inputs(s, k, units))
            if clamped is not None:
                drawn = np.where(clamped[block.columns], units[:, block.columns], drawn)
            units[:, block.columns] = drawn
        return units[:, : target.n_state]


class Path(ABC):
    """Distributions f_s of a chain's state (chain, unit), and the transition that moves chains at every s."""

    transition: Transition
    log_z_base: float = 0.0
    """Log normaliser of f_0, exact; 0 where f_0 is normalised."""
    n_state: int
    """Units of the state."""
    dtype: np.dtype[Any] = np.dtype(np.uint8)
    """What states are kept in."""
    log_constant: float = 0.0
    """Part of the model's log f that every f_s leaves out; log Z has it."""
    draws_in_rows: bool = False
    """Whether each layer begins a new row of random numbers: see `Draws`."""

    @abstractmethod
    def log_f(self, s: float, state: States) -> Floats:
        """Log f_s (chain,) of states."""

    @abstractmethod
    def draw_base(self, state: States, draws: Draws, clamped: NDArray[np.bool_] | None = None) -> States:
        """Exact draws (chain, unit) of f_0, given the units of the state that are clamped (unit,)."""

    @abstractmethod
    def log_prob_base(self, states: States) -> Floats:
        """Log probability (chain,) under the base of the leading units (chain, leading unit) of the state."""


class Distribution(Protocol):
    """A base: a name, exact draws, and log probabilities."""

    name: str

    def draw(self, draws: Draws) -> States:
        """States (chain, unit), one for each chain of the draws."""
        ...

    def log_prob(self, states: States) -> Floats:
        """Log probability (chain,) of states."""
        ...


class Target(Protocol):
    """What a geometric path asks of a model: its state is its visible units."""

    @property
    def n_visible(self) -> int: ...

    @property
    def support(self) -> Any: ...  # noqa: ANN401 the kind of the visible units

    def log_f(self, x: NDArray[Any]) -> Floats: ...


@dataclass(frozen=True, eq=False)
class GeometricPath(Path):
    """f_s = f_0^(1-s) · f_1^s, from a base of any kind to a model whose state is its visible units."""

    model: Target
    base: Distribution
    transition: Transition

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_state", self.model.n_visible)
        object.__setattr__(self, "dtype", self.model.support.dtype)

    def log_f(self, s: float, state: States) -> Floats:
        log_prob = self.base.log_prob(state)
        if s == 0:
            return log_prob
        return (1 - s) * log_prob + s * self.model.log_f(self.model.support.decode(state))

    def draw_base(self, state: States, draws: Draws, clamped: NDArray[np.bool_] | None = None) -> States:
        assert clamped is None, "all units of the state are visible, so that none is heated"
        return self.base.draw(draws)

    def log_prob_base(self, states: States) -> Floats:
        return self.base.log_prob(states)


def anneal_reference(path: Path, segment: Segment, state: States, draws: Draws) -> tuple[States, Floats]:
    """Final states (chain, unit of the state) and log weights (chain,) of one segment, in float64."""
    transition = path.transition.reversed() if segment.reversed_sweeps else path.transition
    log_weights = np.zeros(len(state))
    for s, following in itertools.pairwise(segment.betas):
        if s == 0:  # whatever the transition is, chains start at exact draws
            state = path.draw_base(state, draws, segment.clamped)
        else:
            state = transition.move(path, s, state, draws, segment.clamped)
        log_weights += path.log_f(following, state) - path.log_f(s, state)
    return state, log_weights
