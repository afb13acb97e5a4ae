"""The training loop of all models: stages, epochs, and what Ctrl-C does.

A run has one stage for each DBM that is trained: the layers of a greedy stack, and all layers together. Its examples
are checked once, then shuffled (and drawn anew, if they are grey) in every epoch.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meltpoint.errors import InputError, Progress
from meltpoint.kernels.bit_products import State
from meltpoint.layers import BERNOULLI
from meltpoint.randomness import Purpose, check_seed, generator
from meltpoint.training.checkpoint import Checkpoint, open_checkpoint
from meltpoint.training.examples import Examples, check_examples
from meltpoint.training.monitor import Epoch, describe_epoch
from meltpoint.training.phases import TrainableDBM, initial_dbm, random_stream
from meltpoint.training.stage import StagePlan, TrainingState, initial_state, update

_SHUFFLE, _DRAWS, _START, _RATES = 0, 1, 3, 4  # keys of random streams; the monitor has 2
_RATES_EXAMPLES = 10_000


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
    assert not isinstance(progress, bool), "public() has made a callback of it"
    seed = check_seed(seed)
    held_out = None if validation is None else check_examples(validation, "validation", like=examples)
    with (
        nullcontext() if checkpoint is None else open_checkpoint(checkpoint, examples.rows, plans, seed)
    ) as file:
        yield TrainingRun(examples, held_out, tuple(plans), seed, progress, on_epoch, file)


@dataclass(frozen=True)
class Stage:
    """A stage of a run. The RBMs `below` draw its lowest layer from visible units; without them that is the lowest."""

    run: TrainingRun
    plan: StagePlan
    below: tuple[TrainableDBM, ...] = ()

    def lowest_layer(self, visible: State, stream: NDArray[np.uint32]) -> State:
        """State (example, unit) of the layer that this stage is trained on, one copy of it."""
        state = visible
        for rbm in self.below:
            rates = rbm.probabilities(1, [cast(State, state * np.uint8(rbm.copies[0]))])
            state = BERNOULLI.draw_statistics(rates, (), stream)
        return state

    def stream(self, *key: int) -> NDArray[np.uint32]:
        return random_stream(self.run.seed, self.plan.number, *key)

    def generator(self, *key: int) -> np.random.Generator:
        return generator(self.run.seed, Purpose.TRAINING, self.plan.number, *key)

    def initial_rbm(self) -> TrainableDBM:
        """Where a stage starts: with the visible biases that fit the layer below."""
        examples, architecture = self.run.examples, self.plan.architecture
        states = examples.rows
        if self.below:
            stream = self.stream(_RATES)
            states = self.lowest_layer(examples.layer(slice(_RATES_EXAMPLES), stream), stream)
        bias = architecture.visible.initial_bias(states)
        return initial_dbm(architecture, bias, self.generator(_START))


def train_stage(stage: Stage, start: Callable[[], TrainableDBM]) -> TrainableDBM:
    """The DBM at the end of its stage, trained from `start`, or from the run's checkpoint."""
    run, plan = stage.run, stage.plan
    kept = run.checkpoint.stages if run.checkpoint else []
    state = kept[plan.number] if plan.number < len(kept) else initial_state(start())
    if state.epoch == plan.n_epochs:
        return state.averaged
    seconds = 0.0
    with postponed_interrupts() as interrupted:
        while state.epoch < plan.n_epochs:
            begun = time.monotonic()
            _train_epoch(stage, state, interrupted)
            seconds += time.monotonic() - begun
            if run.on_epoch is not None:
                run.on_epoch(describe_epoch(stage, state, seconds))
        if run.checkpoint:
            run.checkpoint.save(plan.number, state)
    return state.averaged


def _train_epoch(stage: Stage, state: TrainingState, interrupted: Callable[[], bool]) -> None:
    """Show the model every example once, or those that are left of an epoch that was interrupted."""
    run, plan = stage.run, stage.plan
    batches = shuffled_batches(plan.n_examples, plan.n_batches, stage.generator(state.epoch, _SHUFFLE))
    while state.batch < plan.n_batches:
        stream = stage.stream(state.epoch, _DRAWS, state.batch)
        visible = run.examples.layer(batches[state.batch], stream)
        update(state, plan, stage.lowest_layer(visible, stream), stream)
        if run.progress is not None:
            run.progress(plan.name, state.epoch + state.batch / plan.n_batches, plan.n_epochs)
        if interrupted():
            if run.checkpoint:
                run.checkpoint.save(plan.number, state)
            raise KeyboardInterrupt
        if run.checkpoint:
            run.checkpoint.save_if_due(plan.number, state)
    state.epoch, state.batch = state.epoch + 1, 0
    if not all(np.isfinite(bias).all() for bias in state.dbm.biases):
        raise InputError(
            found=f"parameters that are not finite after epoch {state.epoch}",
            expected="a training that converges",
            remedy=f"lower the learning rate, which is {plan.settings.learning_rate:g}",
        )


def shuffled_batches(n: int, n_batches: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """Which examples are in each batch of one epoch: every example once, as evenly as possible."""
    return np.array_split(generator.permutation(n), n_batches)


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
