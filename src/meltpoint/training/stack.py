"""Greedy stacks: each layer is trained as an RBM on draws from the layers below it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import Progress
from meltpoint.training.draws import draw, stream
from meltpoint.training.examples import Examples
from meltpoint.training.fit import fit, started
from meltpoint.training.machine import Machine, new_machine
from meltpoint.training.settings import Settings

_START, _RATES = 4, 5


@dataclass(frozen=True)
class Lift:
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


def train_stack(
    examples: Examples,
    hidden: Sequence[int],
    settings: Sequence[Settings],
    copies: Sequence[tuple[int, int]],
    seed: int,
    progress: Progress | None,
) -> list[Machine]:
    """One machine of two layers for each hidden layer, lowest first, with these copies of its layers."""
    machines: list[Machine] = []
    for stage, size in enumerate(hidden):
        lift = Lift(tuple(machines)) if machines else None
        rates = _rates(examples, lift, seed, stage)
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stage, _START)))
        machine = new_machine([rates.size, size], rates, generator, copies[stage])
        training = started(machine, rates)
        machines.append(
            fit(training, examples, settings[stage], seed=seed, stage=stage, lift=lift, progress=progress)
        )
    return machines


def _rates(examples: Examples, lift: Lift | None, seed: int, stage: int) -> NDArray[np.float64]:
    """How often each unit of the layer to be learned is on, smoothed by one example on and one off."""
    if lift is None:
        return examples.rates()
    draws = stream(seed, stage, _RATES)
    batches = examples.batches(seed, stage, 0, 1000)
    ones = np.sum([lift(batch, draws).sum(axis=0, dtype=np.float64) for batch in batches], axis=0)
    return (ones + 1.0) / (len(examples) + 2.0)
