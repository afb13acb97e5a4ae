"""Training of deep models: deep belief networks and deep Boltzmann machines, layer by layer.

A DBN is done when its layers are (Hinton, Osindero and Teh 2006); the layers of a DBM are then trained together
(Salakhutdinov and Hinton 2009).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from meltpoint.progress import reports_progress
from meltpoint.training.checkpoint import StagePlan
from meltpoint.training.examples import check_examples
from meltpoint.training.loop import TrainingStage, train_stage, training_run
from meltpoint.training.monitor import Epoch
from meltpoint.training.phases import Architecture, TrainableDBM, trainable_dbm
from meltpoint.training.rbm import stack_plans, train_stack
from meltpoint.training.settings import (
    DBM_DEFAULTS,
    DBM_HIDDEN,
    DBN_DEFAULTS,
    DBN_HIDDEN,
    MEAN_FIELD_SWEEPS,
    SEED,
    Method,
    Schedule,
    check_positive,
    hidden_sizes,
    settings_of_stages,
)


@reports_progress
def train_dbn(
    data: ArrayLike,
    hidden: Sequence[int] = DBN_HIDDEN,
    *,
    method: Method | Sequence[Method] = DBN_DEFAULTS.method,
    k: int | Sequence[int] = DBN_DEFAULTS.k,
    epochs: int | Sequence[int | None] | None = DBN_DEFAULTS.epochs,
    batch: int | Sequence[int] = DBN_DEFAULTS.batch,
    learning_rate: float | Sequence[float] = DBN_DEFAULTS.learning_rate,
    schedule: Schedule | Sequence[Schedule] = DBN_DEFAULTS.schedule,
    momentum: float | Sequence[float] = DBN_DEFAULTS.momentum,
    weight_decay: float | Sequence[float] = DBN_DEFAULTS.weight_decay,
    averaged: float | Sequence[float] = DBN_DEFAULTS.averaged,
    centred: bool | Sequence[bool] = DBN_DEFAULTS.centred,
    chains: int | None = DBN_DEFAULTS.chains,
    seed: int = SEED,
    validation: ArrayLike | None = None,
    progress: Progress | bool | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> DBN:
    """A DBN trained greedily on data (example, visible unit) of zeros and ones, or grey values in [0, 1].

    Every layer is first an RBM on draws from the layers below. All but the highest then become directed: the
    RBM's weights and visible biases generate, the same weights and its hidden biases recognise.

    Parameters
    ----------
    data
        As for `train_rbm`.
    hidden
        Numbers of hidden units, lowest layer first.
    method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred
        As for `train_rbm`: one value for all layers, or a sequence with one for each, lowest first.
    chains, seed, validation, progress, on_epoch, checkpoint
        As for `train_rbm`.

    Examples
    --------
    >>> import numpy as np
    >>> stripes = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> train_dbn(stripes, hidden=(3, 2), epochs=2, batch=10)
    DBN 4-3-2

    """
    sizes = hidden_sizes(hidden)
    options = (method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred)
    settings = settings_of_stages(len(sizes), *options, chains)
    examples = check_examples(data, "data")
    plans = stack_plans(examples, sizes, settings)
    with training_run(examples, plans, seed, validation, progress, on_epoch, checkpoint) as run:
        return _dbn(train_stack(run, len(sizes), _dbn))


def _dbn(layers: Sequence[TrainableDBM]) -> DBN:
    return DBN([layer.parameters for layer in layers[:-1]], top=RBM(*layers[-1].parameters))


@reports_progress
def train_dbm(
    data: ArrayLike,
    hidden: Sequence[int] = DBM_HIDDEN,
    *,
    method: Method | Sequence[Method] = DBM_DEFAULTS.method,
    k: int | Sequence[int] = DBM_DEFAULTS.k,
    epochs: int | Sequence[int | None] | None = DBM_DEFAULTS.epochs,
    batch: int | Sequence[int] = DBM_DEFAULTS.batch,
    learning_rate: float | Sequence[float] = DBM_DEFAULTS.learning_rate,
    schedule: Schedule | Sequence[Schedule] = DBM_DEFAULTS.schedule,
    momentum: float | Sequence[float] = DBM_DEFAULTS.momentum,
    weight_decay: float | Sequence[float] = DBM_DEFAULTS.weight_decay,
    averaged: float | Sequence[float] = DBM_DEFAULTS.averaged,
    centred: bool | Sequence[bool] = DBM_DEFAULTS.centred,
    chains: int | None = DBM_DEFAULTS.chains,
    sweeps: int = MEAN_FIELD_SWEEPS,
    seed: int = SEED,
    validation: ArrayLike | None = None,
    progress: Progress | bool | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> DBM:
    """A DBM trained on data (example, visible unit) of zeros and ones, or grey values in [0, 1].

    Every layer is first trained alone as an RBM in which the layers that will have a second neighbour count
    double; then all layers together, with mean field in the data phase and persistent chains in the model phase.

    Parameters
    ----------
    data
        As for `train_rbm`.
    hidden
        Numbers of hidden units, lowest layer first.
    method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred
        As for `train_rbm`: one value for all stages, or a sequence with one for each. The stages are the hidden
        layers, lowest first, and the training of all layers together.
    sweeps
        Mean-field sweeps in the data phase.
    chains, seed, validation, progress, on_epoch, checkpoint
        As for `train_rbm`.

    Examples
    --------
    >>> import numpy as np
    >>> stripes = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> train_dbm(stripes, hidden=(3, 2), epochs=2, batch=10)
    DBM 4-3-2

    """
    sizes = hidden_sizes(hidden)
    depth = len(sizes)
    options = (method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred)
    *settings, last = settings_of_stages(depth + 1, *options, chains)
    sweeps = check_positive("sweeps", sweeps)
    examples = check_examples(data, "data")
    # The input from one side stands in for the other side too, except where there is no other side.
    copies = [(1 if layer == depth - 1 else 2, 1 if layer == 0 else 2) for layer in range(depth)]
    joint = Architecture((examples.width, *sizes), (1,) * (depth + 1))
    together = StagePlan("all layers", joint, last, len(examples), sweeps)
    plans = [*stack_plans(examples, sizes, settings, copies), together]
    with training_run(examples, plans, seed, validation, progress, on_epoch, checkpoint) as run:
        layers = train_stack(run, depth, None)
        stage = TrainingStage(depth, together, model=_dbm)
        return _dbm([train_stage(run, stage, lambda: compose_layers(layers))])


def _dbm(layers: Sequence[TrainableDBM]) -> DBM:
    (dbm,) = layers
    return DBM([coupling.weights for coupling in dbm.couplings], dbm.biases)


def compose_layers(layers: Sequence[TrainableDBM]) -> TrainableDBM:
    """The DBM of all layers from pretrained pairs; a bias that two of them learned is their mean."""
    between = [np.float32(0.5) * (low.biases[1] + high.biases[0]) for low, high in pairwise(layers)]
    weights = [layer.couplings[0].weights.copy() for layer in layers]
    biases = [layers[0].biases[0].copy(), *between, layers[-1].biases[1].copy()]
    return trainable_dbm([*weights, *biases], (1,) * len(biases))
