"""Stochastic gradient ascent with momentum, weight decay and an average of the last iterates.

`TrainingState` is everything that changes while one stage of a run is trained.
"""

from dataclasses import dataclass, field

import numpy as np

from meltpoint.kernels.compiling import compiled
from meltpoint.training.phases import Array, Gradient, States, TrainableDBM, trainable_dbm


@dataclass
class OptimiserState:
    """Velocity and running average of every parameter, weights first, and how many iterates were averaged."""

    velocity: tuple[Array, ...]
    average: tuple[Array, ...]
    n_averaged: int = 0


@dataclass
class TrainingState:
    """A DBM in training: `batch` batches of epoch `epoch` are done.

    The random numbers of every batch come from a stream of its own, so no generator has to be kept. `offsets`
    and `chains` have one array for each layer, and for each odd layer; they are empty before the first batch.
    """

    dbm: TrainableDBM
    optimiser: OptimiserState
    offsets: list[Array] = field(default_factory=list)
    chains: States = field(default_factory=list)
    epoch: int = 0
    batch: int = 0


def zero_velocity(dbm: TrainableDBM) -> OptimiserState:
    """No velocity, nothing averaged yet."""
    return OptimiserState(
        tuple(map(np.zeros_like, dbm.parameters)), tuple(map(np.zeros_like, dbm.parameters))
    )


def averaged_dbm(state: TrainingState) -> TrainableDBM:
    """The DBM with the average of the last iterates, or with the present one where none is averaged yet."""
    if state.optimiser.n_averaged:
        return trainable_dbm(state.optimiser.average, state.dbm.copies, state.dbm.visible)
    return state.dbm


def sgd_step(
    dbm: TrainableDBM,
    optimiser: OptimiserState,
    gradient: Gradient,
    rate: float,
    momentum: float,
    weight_decay: float,
) -> None:
    """Move every parameter one step along the gradient, in place. Biases do not decay."""
    decays = [weight_decay] * len(dbm.couplings) + [0.0] * (len(dbm.biases) + len(dbm.further))
    for value, velocity, slope, decay in zip(
        dbm.parameters,
        optimiser.velocity,
        (*gradient.pairs, *gradient.units, *gradient.further),
        decays,
        strict=True,
    ):
        factors = np.array([rate, momentum, decay], value.dtype)
        _move(value.ravel(), velocity.ravel(), slope.ravel(), factors)
    for coupling in dbm.couplings:
        coupling.changed()


def update_average(dbm: TrainableDBM, optimiser: OptimiserState) -> None:
    """Take the present parameters into the average."""
    optimiser.n_averaged += 1
    for value, mean in zip(dbm.parameters, optimiser.average, strict=True):
        _approach(mean.ravel(), value.ravel(), np.array([1.0 / optimiser.n_averaged], value.dtype))


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
