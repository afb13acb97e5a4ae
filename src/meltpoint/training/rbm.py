"""Training of restricted Boltzmann machines, alone and as greedy stacks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.layers import BERNOULLI, Unit
from meltpoint.models import Model
from meltpoint.models.rbm import RBM
from meltpoint.progress import reports_progress
from meltpoint.randomness import Purpose, generator
from meltpoint.training.checkpoint import StagePlan
from meltpoint.training.examples import Examples, check_examples
from meltpoint.training.loop import (
    TrainingRun,
    TrainingStage,
    train_stage,
    training_run,
)
from meltpoint.training.monitor import Epoch
from meltpoint.training.phases import Architecture, TrainableDBM, initial_dbm, random_stream
from meltpoint.training.settings import (
    RBM_DEFAULTS,
    RBM_HIDDEN,
    SEED,
    Method,
    Schedule,
    TrainingSettings,
    check_positive,
)

_START, _RATES = 3, 4  # keys of random streams
_RATES_EXAMPLES = 10_000


@reports_progress
def train_rbm(
    data: ArrayLike,
    hidden: int = RBM_HIDDEN,
    *,
    visible: str | Unit = "bernoulli",
    method: Method = RBM_DEFAULTS.method,
    k: int = RBM_DEFAULTS.k,
    epochs: int | None = RBM_DEFAULTS.epochs,
    batch: int = RBM_DEFAULTS.batch,
    learning_rate: float | None = None,
    schedule: Schedule = RBM_DEFAULTS.schedule,
    momentum: float = RBM_DEFAULTS.momentum,
    weight_decay: float = RBM_DEFAULTS.weight_decay,
    averaged: float = RBM_DEFAULTS.averaged,
    centred: bool = RBM_DEFAULTS.centred,
    chains: int | None = RBM_DEFAULTS.chains,
    seed: int = SEED,
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
    >>>     >>> stripes = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> train_rbm(stripes, hidden=2, epochs=2, batch=10)
    RBM 4-2

    """
    examples = check_examples(data, "data", visible)
    if learning_rate is None:
        learning_rate = RBM_DEFAULTS.learning_rate * examples.visible.rate_share
    settings = TrainingSettings(
        method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred, chains
    )
    plans = stack_plans(examples, (check_positive("hidden", hidden),), [settings])
    with training_run(examples, plans, seed, validation, progress, on_epoch, checkpoint) as run:
        return _rbm(train_stack(run, 1, _rbm))


def _rbm(layers: Sequence[TrainableDBM]) -> RBM:
    return RBM(**layers[0].visible.rbm_arguments(*layers[0].parameters))


def stack_plans(
    examples: Examples,
    hidden: Sequence[int],
    settings: Sequence[TrainingSettings],
    copies: Sequence[tuple[int, int]] | None = None,
) -> list[StagePlan]:
    """Every two neighbouring layers as an RBM, with these copies of its lower and upper layer."""
    depth = len(hidden)
    return [
        StagePlan(
            f"layer {k + 1} of {depth}" if depth > 1 else "training",
            Architecture(pair, copies[k] if copies else (1, 1), examples.visible if k == 0 else BERNOULLI),
            settings[k],
            len(examples),
        )
        for k, pair in enumerate(pairwise((examples.width, *hidden)))
    ]


def train_stack(
    run: TrainingRun, n_layers: int, model: Callable[[Sequence[TrainableDBM]], Model] | None
) -> list[TrainableDBM]:
    """One RBM for each hidden layer, lowest first: the first `n_layers` stages of the run.

    Each is trained on draws from the layers below it. `model` gives the model that the first few RBMs make up,
    None if they do not make one up yet.
    """
    layers: list[TrainableDBM] = []
    for number, plan in enumerate(run.plans[:n_layers]):
        stage = TrainingStage(number, plan, tuple(layers), model)
        layers.append(train_stage(run, stage, partial(_initial_rbm, run, stage)))
    return layers


def _initial_rbm(run: TrainingRun, stage: TrainingStage) -> TrainableDBM:
    """Where a stage starts: with the visible biases that fit the layer below."""
    states = run.examples.rows
    if stage.below:
        stream = random_stream(run.seed, stage.number, _RATES)
        states = stage.lowest_layer(run.examples.layer(slice(_RATES_EXAMPLES), stream), stream)
    architecture = stage.plan.architecture
    random = generator(run.seed, Purpose.TRAINING, stage.number, _START)
    return initial_dbm(architecture, architecture.visible.initial_bias(states), random)
