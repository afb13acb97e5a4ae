"""The training loop of all models: examples, stages, epochs, and updates of data phase, model phase and step.

A run has one stage for each DBM that is trained: the layers of a greedy stack, and all layers together. Its examples
are checked once, then shuffled (and drawn anew, if they are grey) in every epoch.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import FrameType
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError, Progress
from meltpoint.kernels.bit_products import State
from meltpoint.layers import BERNOULLI
from meltpoint.models import Model
from meltpoint.randomness import Purpose, check_seed, generator
from meltpoint.training.checkpoint import Checkpoint, StagePlan, open_checkpoint
from meltpoint.training.examples import Examples, check_examples
from meltpoint.training.monitor import Epoch, describe_epoch
from meltpoint.training.optimiser import (
    TrainingState,
    averaged_dbm,
    initial_state,
    is_averaged,
    sgd_step,
    stage_progress,
    update_average,
)
from meltpoint.training.phases import (
    TrainableDBM,
    centre,
    data_phase,
    gradient,
    model_phase,
    random_stream,
    start_chains,
)
from meltpoint.training.settings import TrainingSettings

_SHUFFLE, _DRAWS = 0, 1  # keys of random streams; the monitor has 2, the starts of stages 3 and 4
_OFFSET_SHARE = 0.01  # weight of each new batch in the running means that centre the units


def shuffled_batches(n: int, n_batches: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """Which examples are in each batch of one epoch: every example once, as evenly as possible."""
    return np.array_split(generator.permutation(n), n_batches)


@dataclass(frozen=True)
class TrainingStage:
    """Which DBM is trained, on what, and what it will be part of.

    `below` are the RBMs that were trained before and draw the DBM's lowest layer from visible units; without any it is
    the visible layer. `model` gives the model that they and the DBM make up, None where they make up none yet.
    """

    number: int
    plan: StagePlan
    below: tuple[TrainableDBM, ...] = ()
    model: Callable[[Sequence[TrainableDBM]], Model] | None = None

    def lowest_layer(self, visible: State, stream: NDArray[np.uint32]) -> State:
        """State (example, unit) of the layer that this stage is trained on, one copy of it."""
        state = visible
        for rbm in self.below:
            rates = rbm.probabilities(1, [cast(State, state * np.uint8(rbm.copies[0]))])
            state = BERNOULLI.draw_statistics(rates, (), stream)
        return state


@dataclass(frozen=True)
class TrainingRun:
    """What all stages of a run share."""

    examples: Examples
    validation: Examples | None
    plans: tuple[StagePlan, ...]
    seed: int
    progress: Progress | None
    on_epoch: Callable[[Epoch], None] | None
    checkpoint: Checkpoint | None


@contextmanager
def training_run(
    examples: Examples,
    plans: Sequence[StagePlan],
    seed: int,
    validation: ArrayLike | None,
    progress: Progress | bool | None,
    on_epoch: Callable[[Epoch], None] | None,
    checkpoint: str | os.PathLike[str] | None,
) -> Iterator[TrainingRun]:
    """A run, and its checkpoint as long as it lasts, which must agree in all that determines the result."""
    assert not isinstance(progress, bool), "reports_progress has made a callback of it"
    seed = check_seed(seed)
    held_out = None if validation is None else check_examples(validation, "validation", like=examples)
    with (
        nullcontext() if checkpoint is None else open_checkpoint(checkpoint, examples.rows, plans, seed)
    ) as file:
        yield TrainingRun(examples, held_out, tuple(plans), seed, progress, on_epoch, file)


def train_stage(run: TrainingRun, stage: TrainingStage, start: Callable[[], TrainableDBM]) -> TrainableDBM:
    """The DBM at the end of its stage, trained from `start`, or from the run's checkpoint."""
    plan, kept = stage.plan, run.checkpoint.stages if run.checkpoint else []
    state = kept[stage.number] if stage.number < len(kept) else initial_state(start())
    if state.epoch == plan.n_epochs:
        return averaged_dbm(state)
    seconds = 0.0
    with postponed_interrupts() as interrupted:
        while state.epoch < plan.n_epochs:
            begun = time.monotonic()
            _train_epoch(run, stage, state, interrupted)
            seconds += time.monotonic() - begun
            if run.on_epoch is not None:
                run.on_epoch(describe_epoch(run, stage, state, seconds))
        if run.checkpoint:
            run.checkpoint.save(stage.number, state)
    return averaged_dbm(state)


def _train_epoch(
    run: TrainingRun, stage: TrainingStage, state: TrainingState, interrupted: Callable[[], bool]
) -> None:
    """Show the model every example once, or those that are left of an epoch that was interrupted."""
    plan, number = stage.plan, stage.number
    order = generator(run.seed, Purpose.TRAINING, number, state.epoch, _SHUFFLE)
    batches = shuffled_batches(plan.n_examples, plan.n_batches, order)
    while state.batch < plan.n_batches:
        stream = random_stream(run.seed, number, state.epoch, _DRAWS, state.batch)
        visible = run.examples.layer(batches[state.batch], stream)
        progress = stage_progress(state.epoch, state.batch, plan.n_batches, plan.n_epochs)
        update(state, plan.settings, stage.lowest_layer(visible, stream), plan.sweeps, progress, stream)
        state.batch += 1
        if run.progress is not None:
            run.progress(plan.name, state.epoch + state.batch / plan.n_batches, plan.n_epochs)
        if interrupted():
            if run.checkpoint:
                run.checkpoint.save(number, state)
            raise KeyboardInterrupt
        if run.checkpoint:
            run.checkpoint.save_if_due(number, state)
    state.epoch, state.batch = state.epoch + 1, 0
    if not all(np.isfinite(bias).all() for bias in state.dbm.biases):
        raise InputError(
            found=f"parameters that are not finite after epoch {state.epoch}",
            expected="a training that converges",
            remedy=f"lower the learning rate, which is {plan.settings.learning_rate:g}",
        )


def update(
    state: TrainingState,
    settings: TrainingSettings,
    visible: State,
    sweeps: int,
    progress: float,
    stream: NDArray[np.uint32],
) -> None:
    """Learn from one batch (example, unit), after a fraction `progress` of the stage."""
    dbm = state.dbm
    data = data_phase(dbm, visible, sweeps)
    chains = list(state.chains) or start_chains(dbm, data, settings.chains or len(visible), stream)
    model, chains = model_phase(dbm, chains, settings.k, stream)
    state.chains = tuple(chains) if settings.method == "pcd" else ()
    slope = gradient(data, model, dbm.biases[0].dtype)
    slope = replace(slope, further=dbm.visible.further_slopes(data[0], model[0], dbm.further))
    if settings.centred:
        means = tuple(layer.mean(axis=0, dtype=dbm.biases[0].dtype) for layer in data)
        state.offsets = state.offsets or means
        for offset, mean in zip(state.offsets, means, strict=True):
            offset += _OFFSET_SHARE * (mean - offset)
        centre(slope, state.offsets)
    sgd_step(state, slope, settings.rate(progress), settings.momentum, settings.weight_decay)
    if is_averaged(progress, settings.averaged):
        update_average(state)


@contextmanager
def postponed_interrupts() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed since; pressing it twice interrupts at once.

    So an update is never left half done. SIGTERM counts as Ctrl-C where the program has given it a handler. A
    signal that is ignored stays ignored. Python delivers signals to the main thread alone: in any other thread
    the answer is always no.
    """
    pressed = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    before = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        before = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in before:
            signal.signal(number, note)
        yield lambda: pressed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
