"""The training loop, the same for every machine: data phase, model phase, step; again."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import Progress
from meltpoint.training.ascent import Ascent, at_rest, average, climb
from meltpoint.training.draws import stream
from meltpoint.training.examples import Examples
from meltpoint.training.machine import Array, Machine, States, machine_of
from meltpoint.training.phases import begin, centre, dream, gradient, infer
from meltpoint.training.settings import Settings

_CHAINS, _MODEL = 2, 3
_OFFSET_SHARE = 0.01  # of each new batch in the running means that centre the hidden units

Lift = Callable[[NDArray[np.uint8], NDArray[np.uint32]], NDArray[np.uint8]]
"""From visible units (example, unit) to the layer that is being trained, with a stream for draws."""


@dataclass
class Training:
    """Everything that changes while a machine is trained."""

    machine: Machine
    ascent: Ascent
    offsets: list[Array]
    chains: States = field(default_factory=list)
    epoch: int = 0


def fit(
    training: Training,
    examples: Examples,
    settings: Settings,
    *,
    seed: int,
    stage: int,
    sweeps: int = 0,
    lift: Lift | None = None,
    progress: Progress | None = None,
) -> Machine:
    """Train to the end and return the machine: the average of the last iterates, or the last one."""
    while training.epoch < settings.epochs:
        run_epoch(training, examples, settings, seed, stage, sweeps, lift)
        if progress is not None:
            progress(
                f"training: epoch {training.epoch} of {settings.epochs}", training.epoch, settings.epochs
            )
    if training.ascent.n_averaged:
        return machine_of(training.ascent.average, training.machine.copies)
    return training.machine


def started(machine: Machine, rates: Array) -> Training:
    """Training at its first epoch."""
    offsets = [rates.astype(np.float32) * machine.copies[0]]
    offsets += [
        np.full(b.size, 0.5 * c, np.float32)
        for b, c in zip(machine.biases[1:], machine.copies[1:], strict=True)
    ]
    return Training(machine, at_rest(machine), offsets)


def run_epoch(
    training: Training,
    examples: Examples,
    settings: Settings,
    seed: int,
    stage: int,
    sweeps: int,
    lift: Lift | None,
) -> None:
    """Show the machine every example once."""
    machine, epoch = training.machine, training.epoch
    draws = stream(seed, stage, epoch, _MODEL)
    n_batches = max(1, len(examples) // settings.batch)
    for i, batch in enumerate(examples.batches(seed, stage, epoch, settings.batch)):
        data = infer(machine, lift(batch, draws) if lift else batch, sweeps)
        if settings.method == "cd" or not training.chains:
            training.chains = begin(machine, data, settings.chains or len(batch), draws)
        model, training.chains = dream(machine, training.chains, settings.k, draws)
        slope = gradient(data, model, machine.biases[0].dtype)
        if settings.centred:
            for offset, states in zip(training.offsets[1:], data[1:], strict=True):
                offset += _OFFSET_SHARE * (states.mean(axis=0) - offset)
            centre(slope, training.offsets)
        done = (epoch + i / n_batches) / settings.epochs
        climb(machine, training.ascent, slope, settings.rate(done), settings.momentum, settings.weight_decay)
        if done >= 1.0 - settings.averaged:
            average(machine, training.ascent)
    training.epoch += 1
