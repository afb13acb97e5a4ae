"""Training of restricted Boltzmann machines by contrastive divergence, persistent or not."""

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.models.rbm import RBM
from meltpoint.training.examples import checked
from meltpoint.training.fit import fit, started
from meltpoint.training.machine import new_machine
from meltpoint.training.settings import Method, Schedule, Settings


def train_rbm(
    data: ArrayLike,
    hidden: int = 500,
    *,
    method: Method = "pcd",
    k: int = 1,
    epochs: int = 30,
    batch: int = 100,
    learning_rate: float = 0.05,
    schedule: Schedule = "linear",
    momentum: float = 0.0,
    weight_decay: float = 1e-4,
    averaged: float = 0.2,
    centred: bool = True,
    chains: int | None = None,
    seed: int = 0,
    validation: ArrayLike | None = None,
    progress: Progress | None = None,
) -> RBM:
    """An RBM trained on data (example, visible unit) of zeros and ones, or grey values in [0, 1].

    Grey values are probabilities: bits are drawn from them anew in every epoch. `method` is "cd", whose
    chains start at the data, or "pcd", whose `chains` chains go on from step to step; `k` is the number of
    Gibbs steps. The learning rate falls linearly to zero (or stays "constant"), and the result is the average
    of the iterates of the last `averaged` share of the run.

    >>> import numpy as np
    >>> stripes = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> train_rbm(stripes, hidden=2, epochs=2, batch=10)
    RBM 4-2
    """
    settings = Settings(
        method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred, chains
    )
    examples = checked(data, "data")
    rates = examples.rates()
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    machine = new_machine([examples.width, hidden], rates, generator, copies=(1, 1))
    machine = fit(started(machine, rates), examples, settings, seed=seed, stage=0, progress=progress)
    return RBM(machine.weights[0], machine.biases[0], machine.biases[1])
