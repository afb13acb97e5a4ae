"""Training of restricted Boltzmann machines by contrastive divergence, persistent or not."""

import os
from collections.abc import Callable, Sequence

from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.models.rbm import RBM
from meltpoint.training.epoch import Epoch
from meltpoint.training.machine import Machine
from meltpoint.training.run import prepare
from meltpoint.training.settings import Method, Schedule, Settings, whole
from meltpoint.training.stack import train_stack


def train_rbm(
    data: ArrayLike,
    hidden: int = 500,
    *,
    method: Method = "pcd",
    k: int = 1,
    epochs: int = 30,
    batch: int = 100,
    learning_rate: float = 0.2,
    schedule: Schedule = "linear",
    momentum: float = 0.0,
    weight_decay: float = 1e-4,
    averaged: float = 0.2,
    centred: bool = True,
    chains: int | None = None,
    seed: int = 0,
    validation: ArrayLike | None = None,
    progress: Progress | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> RBM:
    """An RBM trained on data (example, visible unit) of zeros and ones, or grey values in [0, 1].

    Grey values are probabilities: bits are drawn from them anew in every epoch. `method` is "cd", whose
    chains start at the data, or "pcd", whose `chains` chains go on from step to step; `k` is the number of
    Gibbs steps. The learning rate falls linearly to zero (or stays "constant"), and the result is the average
    of the iterates of the last `averaged` share of the run.

    `on_epoch` is told after every epoch how it goes, on `validation` data if given. With a `checkpoint` file
    a run that was interrupted goes on where it was when the same call is made again, and ends with the same
    bits; Ctrl-C saves it.

    >>> import numpy as np
    >>> stripes = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> train_rbm(stripes, hidden=2, epochs=2, batch=10)
    RBM 4-2
    """
    settings = Settings(
        method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred, chains
    )
    size = whole("hidden", hidden)
    run = prepare(data, validation, [settings], ("rbm", size), seed, progress, on_epoch, checkpoint)
    (machine,) = train_stack(run, [size], [(1, 1)], _rbm)
    return _rbm([machine])


def _rbm(machines: Sequence[Machine]) -> RBM:
    return RBM(*machines[0].parameters)
