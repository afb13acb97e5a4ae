"""Stochastic gradient ascent with momentum, weight decay and an average of the last iterates.

`TrainingState` is everything that changes while one stage of a run is trained.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.compiling import compiled
from meltpoint.training.phases import Array, Gradient, TrainableDBM, trainable_dbm


@dataclass
class TrainingState:
    """A DBM in training: `batch` batches of epoch `epoch` are done. It is a record that checkpoints keep.

    `velocity` and `average`, the mean of the last iterates, have one array for each parameter, weights first; `offsets`
    and `chains` have one for each layer, and for each odd layer, and none before the first batch. The random numbers
    of every batch come from a stream of its own, so no generator has to be kept.
    """

    parameters: tuple[Array, ...]
    velocity: tuple[Array, ...]
    average: tuple[Array, ...]
    offsets: tuple[Array, ...] = ()
    chains: tuple[NDArray[Any], ...] = ()
    n_averaged: int = 0
    epoch: int = 0
    batch: int = 0
    dbm: TrainableDBM = field(init=False, repr=False)


def initial_state(dbm: TrainableDBM) -> TrainingState:
    """No velocity, nothing averaged yet."""
    velocity, average = (tuple(map(np.zeros_like, dbm.parameters)) for _ in range(2))
    state = TrainingState(dbm.parameters, velocity, average)
    state.dbm = dbm
    return state


def averaged_dbm(state: TrainingState) -> TrainableDBM:
    """The DBM with the average of the last iterates, or with the present one where none is averaged yet."""
    if state.n_averaged:
        return trainable_dbm(state.average, state.dbm.copies, state.dbm.visible)
    return state.dbm


def sgd_step(
    state: TrainingState, gradient: Gradient, rate: float, momentum: float, weight_decay: float
) -> None:
    """Move every parameter one step along the gradient, in place. Biases do not decay."""
    dbm = state.dbm
    slopes = (*gradient.pairs, *gradient.units, *gradient.further)
    for k, (value, velocity, slope) in enumerate(zip(state.parameters, state.velocity, slopes, strict=True)):
        decay = weight_decay if k < len(dbm.couplings) else 0.0
        factors = np.array([rate, momentum, decay], value.dtype)
        _move(value.ravel(), velocity.ravel(), slope.ravel(), factors)
    for coupling in dbm.couplings:
        coupling.changed()


def update_average(state: TrainingState) -> None:
    """Take the present parameters into the average."""
    state.n_averaged += 1
    for value, mean in zip(state.parameters, state.average, strict=True):
        _approach(mean.ravel(), value.ravel(), np.array([1.0 / state.n_averaged], value.dtype))


def stage_progress(epoch: int, batch: int, n_batches: int, n_epochs: int) -> float:
    """Fraction of a stage that lies before this batch."""
    return (epoch + batch / n_batches) / n_epochs


def is_averaged(progress: float, averaged: float) -> bool:
    """Whether the iterate after this fraction of the stage belongs to the last `averaged` share."""
    return progress >= 1.0 - averaged


def n_averaged_before(epoch: int, batch: int, n_batches: int, n_epochs: int, averaged: float) -> int:
    """Number of averaged iterates before this batch of an epoch."""
    return sum(
        is_averaged(stage_progress(e, b, n_batches, n_epochs), averaged)
        for e in range(epoch + 1)
        for b in range(n_batches if e < epoch else batch)
    )


@compiled
def _move(value: np.ndarray, velocity: np.ndarray, slope: np.ndarray, factors: np.ndarray) -> None:
    rate, momentum, decay = factors
    for i in range(value.size):
        velocity[i] = momentum * velocity[i] + rate * (slope[i] - decay * value[i])
        value[i] += velocity[i]


@compiled
def _approach(mean: np.ndarray, value: np.ndarray, factors: np.ndarray) -> None:
    share = factors[0]
    for i in range(mean.size):
        mean[i] += share * (value[i] - mean[i])
