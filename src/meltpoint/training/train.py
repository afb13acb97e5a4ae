"""Training of RBMs, of deep belief networks and of deep Boltzmann machines, the deep ones layer by layer.

A DBN is done when its layers are (Hinton, Osindero and Teh 2006); the layers of a DBM are then trained together
(Salakhutdinov and Hinton 2009).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.arguments import Count, Seed, Share, public
from meltpoint.errors import Progress
from meltpoint.layers import BERNOULLI, Unit
from meltpoint.models import Model
from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from meltpoint.training.examples import Examples, check_examples
from meltpoint.training.loop import Stage, TrainingRun, train_stage, training_run
from meltpoint.training.monitor import Epoch
from meltpoint.training.phases import Architecture, TrainableDBM, trainable_dbm
from meltpoint.training.settings import (
    DBM_DEFAULTS,
    DBM_HIDDEN,
    DBN_DEFAULTS,
    DBN_HIDDEN,
    MEAN_FIELD_SWEEPS,
    RBM_DEFAULTS,
    RBM_HIDDEN,
    SEED,
    LearningRate,
    Method,
    Momentum,
    Schedule,
    TrainingSettings,
    hidden_sizes,
    settings_of_stages,
)
from meltpoint.training.stage import StagePlan


@public
def train_rbm(
    data: ArrayLike,
    hidden: Count = RBM_HIDDEN,
    *,
    visible: str | Unit = "bernoulli",
    method: Method = RBM_DEFAULTS.method,
    k: Count = RBM_DEFAULTS.k,
    epochs: Count | None = RBM_DEFAULTS.epochs,
    batch: Count = RBM_DEFAULTS.batch,
    learning_rate: LearningRate | None = None,
    schedule: Schedule = RBM_DEFAULTS.schedule,
    momentum: Momentum = RBM_DEFAULTS.momentum,
    weight_decay: Share = RBM_DEFAULTS.weight_decay,
    averaged: Share = RBM_DEFAULTS.averaged,
    centred: bool = RBM_DEFAULTS.centred,
    chains: Count | None = RBM_DEFAULTS.chains,
    seed: Seed = SEED,
    validation: ArrayLike | None = None,
    progress: Progress | bool | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> RBM:
    """An RBM trained on data (example, visible unit) by contrastive divergence, persistent or not.

    Parameters
    ----------
    data
        Zeros and ones, or grey values in [0, 1]. Grey values are probabilities: bits are drawn from them anew
        in every epoch. For other visible units -1 and +1, states 0 … q - 1, or real numbers.
    hidden
        Number of hidden units, which are Bernoulli.
    visible
        Kind of visible units: "bernoulli", "spin", "potts" or "gaussian". Potts units have as many states as the data
        shows; for more give a unit, `meltpoint.layers.Potts(21)`. Gaussian units learn their scales.
    method
        "pcd": chains go on from update to update; "cd": they start at the batch.
    k
        Gibbs steps of each update.
    epochs
        How often every example is shown. None is 30, or as many as make 3,000 updates.
    batch
        Examples of one update.
    learning_rate
        Learning rate of the first update. None is 0.2, for Gaussian visible units 0.1.
    schedule
        "linear": the learning rate falls to zero; "constant": it stays.
    momentum
        Fraction of the last step that is added to the next, 0 to 0.999.
    weight_decay
        Rate at which weights, but not biases, decay to zero.
    averaged
        The result is the mean of the parameters over this last fraction of the updates.
    centred
        Whether units are centred at their mean activities.
    chains
        Number of persistent chains. None is as many as a batch has examples.
    seed
        The same seed gives the same model.
    validation
        Held-out examples, for the likelihoods that `on_epoch` is given.
    progress
        Called after every update with (name of the stage, epochs done, epochs in all).
    on_epoch
        Called with an `Epoch` after every epoch.
    checkpoint
        A file for the state of the training, which Ctrl-C saves too. After an interruption the same call continues
        from it, and ends with the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> stripes = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> train_rbm(stripes, hidden=2, epochs=2, batch=10)
    RBM 4-2

    """
    examples = check_examples(data, "data", visible)
    if learning_rate is None:
        learning_rate = RBM_DEFAULTS.learning_rate * examples.visible.rate_share
    settings = TrainingSettings(
        method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred, chains
    )
    plans = stack_plans(examples, (hidden,), [settings], _rbm)
    with training_run(examples, plans, seed, validation, progress, on_epoch, checkpoint) as run:
        return _rbm(train_stack(run, 1))


@public
def train_dbn(
    data: ArrayLike,
    hidden: Count | Sequence[Count] = DBN_HIDDEN,
    *,
    method: Method | Sequence[Method] = DBN_DEFAULTS.method,
    k: Count | Sequence[Count] = DBN_DEFAULTS.k,
    epochs: Count | Sequence[Count | None] | None = DBN_DEFAULTS.epochs,
    batch: Count | Sequence[Count] = DBN_DEFAULTS.batch,
    learning_rate: LearningRate | Sequence[LearningRate] = DBN_DEFAULTS.learning_rate,
    schedule: Schedule | Sequence[Schedule] = DBN_DEFAULTS.schedule,
    momentum: Momentum | Sequence[Momentum] = DBN_DEFAULTS.momentum,
    weight_decay: Share | Sequence[Share] = DBN_DEFAULTS.weight_decay,
    averaged: Share | Sequence[Share] = DBN_DEFAULTS.averaged,
    centred: bool | Sequence[bool] = DBN_DEFAULTS.centred,
    chains: Count | None = DBN_DEFAULTS.chains,
    seed: Seed = SEED,
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
    plans = stack_plans(examples, sizes, settings, _dbn)
    with training_run(examples, plans, seed, validation, progress, on_epoch, checkpoint) as run:
        return _dbn(train_stack(run, len(sizes)))


@public
def train_dbm(
    data: ArrayLike,
    hidden: Count | Sequence[Count] = DBM_HIDDEN,
    *,
    method: Method | Sequence[Method] = DBM_DEFAULTS.method,
    k: Count | Sequence[Count] = DBM_DEFAULTS.k,
    epochs: Count | Sequence[Count | None] | None = DBM_DEFAULTS.epochs,
    batch: Count | Sequence[Count] = DBM_DEFAULTS.batch,
    learning_rate: LearningRate | Sequence[LearningRate] = DBM_DEFAULTS.learning_rate,
    schedule: Schedule | Sequence[Schedule] = DBM_DEFAULTS.schedule,
    momentum: Momentum | Sequence[Momentum] = DBM_DEFAULTS.momentum,
    weight_decay: Share | Sequence[Share] = DBM_DEFAULTS.weight_decay,
    averaged: Share | Sequence[Share] = DBM_DEFAULTS.averaged,
    centred: bool | Sequence[bool] = DBM_DEFAULTS.centred,
    chains: Count | None = DBM_DEFAULTS.chains,
    sweeps: Count = MEAN_FIELD_SWEEPS,
    seed: Seed = SEED,
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
    examples = check_examples(data, "data")
    # The input from one side stands in for the other side too, except where there is no other side.
    copies = [(1 if layer == depth - 1 else 2, 1 if layer == 0 else 2) for layer in range(depth)]
    joint = Architecture((examples.width, *sizes), (1,) * (depth + 1))
    together = StagePlan(depth, "all layers", joint, last, len(examples), sweeps, _dbm)
    plans = [*stack_plans(examples, sizes, settings, copies=copies), together]
    with training_run(examples, plans, seed, validation, progress, on_epoch, checkpoint) as run:
        layers = train_stack(run, depth)
        return _dbm([train_stage(Stage(run, together), lambda: compose_layers(layers))])


def stack_plans(
    examples: Examples,
    hidden: Sequence[int],
    settings: Sequence[TrainingSettings],
    model: Callable[[Sequence[TrainableDBM]], Model] | None = None,
    copies: Sequence[tuple[int, int]] | None = None,
) -> list[StagePlan]:
    """Every two neighbouring layers as an RBM, with these copies of its lower and upper layer.

    `model` gives the model that the first few RBMs make up, None if they do not make one up yet.
    """
    depth = len(hidden)
    return [
        StagePlan(
            k,
            f"layer {k + 1} of {depth}" if depth > 1 else "training",
            Architecture(pair, copies[k] if copies else (1, 1), examples.visible if k == 0 else BERNOULLI),
            settings[k],
            len(examples),
            model=model,
        )
        for k, pair in enumerate(pairwise((examples.width, *hidden)))
    ]


def train_stack(run: TrainingRun, n_layers: int) -> list[TrainableDBM]:
    """One RBM for each hidden layer, lowest first, each trained on draws from the layers below it."""
    layers: list[TrainableDBM] = []
    for plan in run.plans[:n_layers]:
        stage = Stage(run, plan, tuple(layers))
        layers.append(train_stage(stage, stage.initial_rbm))
    return layers


def _rbm(layers: Sequence[TrainableDBM]) -> RBM:
    return RBM(**layers[0].visible.rbm_arguments(*layers[0].parameters))


def _dbn(layers: Sequence[TrainableDBM]) -> DBN:
    return DBN([layer.parameters for layer in layers[:-1]], top=RBM(*layers[-1].parameters))


def _dbm(layers: Sequence[TrainableDBM]) -> DBM:
    (dbm,) = layers
    return DBM([coupling.weights for coupling in dbm.couplings], dbm.biases)


def compose_layers(layers: Sequence[TrainableDBM]) -> TrainableDBM:
    """The DBM of all layers from pretrained pairs; a bias that two of them learned is their mean."""
    between = [np.float32(0.5) * (low.biases[1] + high.biases[0]) for low, high in pairwise(layers)]
    weights = [layer.couplings[0].weights.copy() for layer in layers]
    biases = [layers[0].biases[0].copy(), *between, layers[-1].biases[1].copy()]
    return trainable_dbm([*weights, *biases], (1,) * len(biases))
