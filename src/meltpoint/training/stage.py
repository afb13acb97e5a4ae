"""One stage of a run: one machine, trained for its epochs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.models import Model
from meltpoint.training.draws import draw
from meltpoint.training.machine import Machine


@dataclass(frozen=True)
class Recognition:
    """Draws of a layer from visible units, through the machines trained below it."""

    machines: tuple[Machine, ...]

    def __call__(self, visible: NDArray[np.uint8], draws: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """State (example, unit) of the highest machine's hidden layer, one copy of it."""
        state = visible
        for machine in self.machines:
            rates = machine.probabilities(1, [state * np.uint8(machine.copies[0])])
            state = np.empty(rates.shape, np.uint8)
            draw(rates, draws, state)
        return state


@dataclass(frozen=True)
class Stage:
    """Which machine is trained, on what, and what it will be part of.

    `lift` draws the machine's lower layer from visible units, None where that is the visible layer. `model`
    gives the model that the machine is part of, None where it is not part of one yet.
    """

    number: int
    name: str
    lift: Recognition | None = None
    sweeps: int = 0
    model: Callable[[Machine], Model] | None = None
