"""One stage of a training: its plan, its state, and an update.

An update is a step of stochastic gradient ascent with momentum and weight decay; the last iterates are averaged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.kernels.bit_products import State
from meltpoint.kernels.compiling import compiled
from meltpoint.models import Model
from meltpoint.training.phases import (
    Architecture,
    Array,
    Gradient,
    TrainableDBM,
    centre,
    data_phase,
    gradient,
    model_phase,
    start_chains,
    trainable_dbm,
)
from meltpoint.training.settings import TrainingSettings

_OFFSET_SHARE = 0.01  # weight of each new batch in the running means that centre the units


@dataclass(frozen=True)
class StagePlan:
    """What is trained in a stage, and how, which also determines the arrays of its state.

    `model` gives the model that the stage's DBM makes up with those below it, None where they make up none yet.
    """

    number: int
    name: str
    architecture: Architecture
    settings: TrainingSettings
    n_examples: int
    sweeps: int = 0
    model: Callable[[Sequence[TrainableDBM]], Model] | None = field(default=None, repr=False)

    @property
    def n_epochs(self) -> int:
        return self.settings.n_epochs(self.n_examples)

    @property
    def n_batches(self) -> int:
        return self.settings.n_batches(self.n_examples)

    @property
    def n_chains(self) -> int:
        """Number of persistent chains: as many as the first, largest batch has examples, unless given."""
        return self.settings.chains or -(-self.n_examples // self.n_batches)

    @property
    def parameter_shapes(self) -> list[tuple[int, ...]]:
        """Shapes of all weights, then of all biases, then of what the visible units have besides."""
        sizes = self.architecture.sizes
        further = [(sizes[0],)] * self.architecture.visible.n_further
        return [*pairwise(sizes), *((size,) for size in sizes), *further]

    def progress(self, epoch: int, batch: int) -> float:
        """Fraction of the stage that lies before a batch."""
        return (epoch + batch / self.n_batches) / self.n_epochs

    def averages(self, epoch: int, batch: int) -> bool:
        """Whether the iterate after a batch belongs to the last share, which is averaged."""
        return self.progress(epoch, batch) >= 1.0 - self.settings.averaged


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

    @property
    def averaged(self) -> TrainableDBM:
        """The DBM with the average of the last iterates, or with the present one where none is averaged yet."""
        if not self.n_averaged:
            return self.dbm
        return trainable_dbm(self.average, self.dbm.copies, self.dbm.visible)


def initial_state(dbm: TrainableDBM) -> TrainingState:
    """No velocity, nothing averaged yet."""
    velocity, average = (tuple(map(np.zeros_like, dbm.parameters)) for _ in range(2))
    state = TrainingState(dbm.parameters, velocity, average)
    state.dbm = dbm
    return state


def update(state: TrainingState, plan: StagePlan, visible: State, stream: NDArray[np.uint32]) -> None:
    """Learn from the next batch (example, unit)."""
    dbm, settings = state.dbm, plan.settings
    data = data_phase(dbm, visible, plan.sweeps)
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
    rate = settings.rate(plan.progress(state.epoch, state.batch))
    sgd_step(state, slope, rate, settings.momentum, settings.weight_decay)
    if plan.averages(state.epoch, state.batch):
        update_average(state)
    state.batch += 1


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
