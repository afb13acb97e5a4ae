"""Paths: families of unnormalised distributions f_s, s from 0 to 1, from a base f_0 to the model f_1.

The base can be drawn from exactly and its normaliser is known. A constant of the model is left out of every f_s. The
loop asks a path for what `Path` lists and nothing else; whatever its transition needs besides is between those two.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.draws import Draws
from meltpoint.annealing.transitions import Transition
from meltpoint.layers.unit import Bits, Floats


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
    def log_f(self, s: float, state: Bits) -> Floats:
        """Log f_s (chain,) of states."""

    @abstractmethod
    def draw_base(self, state: Bits, draws: Draws, clamped: NDArray[np.bool_] | None = None) -> Bits:
        """Exact draws (chain, unit) of f_0, given the units of the state that are clamped (unit,)."""

    @abstractmethod
    def log_prob_base(self, states: Bits) -> Floats:
        """Log probability (chain,) under the base of the leading units (chain, leading unit) of the state."""


class Distribution(Protocol):
    """A base: a name, exact draws, and log probabilities."""

    name: str

    def draw(self, draws: Draws) -> Bits:
        """States (chain, unit), one for each chain of the draws."""
        ...

    def log_prob(self, states: Bits) -> Floats:
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

    @property
    def n_state(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.model.n_visible

    @property
    def dtype(self) -> np.dtype[Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.model.support.dtype

    def log_f(self, s: float, state: Bits) -> Floats:
        log_prob = self.base.log_prob(state)
        if s == 0:
            return log_prob
        return (1 - s) * log_prob + s * self.model.log_f(self.model.support.decode(state))

    def draw_base(self, state: Bits, draws: Draws, clamped: NDArray[np.bool_] | None = None) -> Bits:
        assert clamped is None, "all units of the state are visible, so that none is heated"
        return self.base.draw(draws)

    def log_prob_base(self, states: Bits) -> Floats:
        return self.base.log_prob(states)
