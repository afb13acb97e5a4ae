"""The training loop, the same for every machine: data phase, model phase, step; again."""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.randomness import Purpose, generator
from meltpoint.training.ascent import average, climb
from meltpoint.training.draws import stream
from meltpoint.training.examples import shuffled
from meltpoint.training.interrupts import postponed_interrupts
from meltpoint.training.machine import Machine
from meltpoint.training.phases import begin, centre, dream, gradient, infer
from meltpoint.training.run import Run
from meltpoint.training.settings import Settings
from meltpoint.training.stage import Stage
from meltpoint.training.state import Training, latest, started
from meltpoint.training.watch import watch

_SHUFFLE, _DRAWS = 0, 1
_OFFSET_SHARE = 0.01  # of each new batch in the running means that centre the units


def fit(run: Run, stage: Stage, start: Callable[[], Machine]) -> Machine:
    """Train a machine from `start`, or from the run's checkpoint, to the end of its stage."""
    saved = run.checkpoint and run.checkpoint.training_at(stage.number)
    training = saved or started(start())
    settings = run.settings[stage.number]
    if training.epoch == settings.epochs:
        return latest(training)
    seconds = 0.0
    with postponed_interrupts() as interrupted:
        while training.epoch < settings.epochs:
            begun = time.monotonic()
            _run_epoch(run, stage, settings, training, interrupted)
            seconds += time.monotonic() - begun
            if run.on_epoch is not None:
                run.on_epoch(watch(run, stage, training, seconds))
        if run.checkpoint:
            run.checkpoint.save(stage.number, training)
    return latest(training)


def _run_epoch(
    run: Run, stage: Stage, settings: Settings, training: Training, interrupted: Callable[[], bool]
) -> None:
    """Show the machine every example once, or those that are left of an epoch that was interrupted."""
    order = generator(run.seed, Purpose.TRAINING, stage.number, training.epoch, _SHUFFLE)
    batches = shuffled(len(run.examples), settings.batch, order)
    while training.batch < len(batches):
        draws = stream(run.seed, stage.number, training.epoch, _DRAWS, training.batch)
        visible = run.examples.bits(batches[training.batch], draws)
        share = (training.epoch + training.batch / len(batches)) / settings.epochs
        step(
            training,
            settings,
            stage.lift(visible, draws) if stage.lift else visible,
            stage.sweeps,
            share,
            draws,
        )
        training.batch += 1
        if run.progress is not None:
            run.progress(stage.name, training.epoch + training.batch / len(batches), settings.epochs)
        if interrupted():
            if run.checkpoint:
                run.checkpoint.save(stage.number, training)
            raise KeyboardInterrupt
        if run.checkpoint:
            run.checkpoint.save_if_due(stage.number, training)
    training.epoch, training.batch = training.epoch + 1, 0
    if not all(np.isfinite(bias).all() for bias in training.machine.biases):
        raise InputError(
            found=f"parameters that are not finite after epoch {training.epoch}",
            expected="a training that converges",
            remedy=f"lower the learning rate, which is {settings.learning_rate:g}",
        )


def step(
    training: Training,
    settings: Settings,
    visible: NDArray[np.uint8],
    sweeps: int,
    share: float,
    draws: NDArray[np.uint32],
) -> None:
    """Learn from one batch (example, unit); `share` of the stage lies behind."""
    machine = training.machine
    data = infer(machine, visible, sweeps)
    if settings.method == "cd" or not training.chains:
        training.chains = begin(machine, data, settings.chains or len(visible), draws)
    model, training.chains = dream(machine, training.chains, settings.k, draws)
    slope = gradient(data, model, machine.biases[0].dtype)
    if settings.centred:
        means = [layer.mean(axis=0, dtype=machine.biases[0].dtype) for layer in data]
        training.offsets = training.offsets or means
        for offset, mean in zip(training.offsets, means, strict=True):
            offset += _OFFSET_SHARE * (mean - offset)
        centre(slope, training.offsets)
    climb(machine, training.ascent, slope, settings.rate(share), settings.momentum, settings.weight_decay)
    if share >= 1.0 - settings.averaged:
        average(machine, training.ascent)
