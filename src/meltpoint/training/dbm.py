"""Training of deep Boltzmann machines: layer by layer, then together (Salakhutdinov and Hinton 2009)."""

import os
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.models.dbm import DBM
from meltpoint.training.epoch import Epoch
from meltpoint.training.fit import fit
from meltpoint.training.machine import Machine, machine_of
from meltpoint.training.run import prepare
from meltpoint.training.settings import Method, Schedule, settings_of_stages, whole
from meltpoint.training.stack import train_stack
from meltpoint.training.stage import Stage


def train_dbm(
    data: ArrayLike,
    hidden: Sequence[int] = (500, 1000),
    *,
    method: Method | Sequence[Method] = "pcd",
    k: int | Sequence[int] = 1,
    epochs: int | Sequence[int] = 30,
    batch: int | Sequence[int] = 100,
    learning_rate: float | Sequence[float] = 0.1,
    schedule: Schedule | Sequence[Schedule] = "linear",
    momentum: float | Sequence[float] = 0.0,
    weight_decay: float | Sequence[float] = 1e-4,
    averaged: float | Sequence[float] = 0.2,
    centred: bool | Sequence[bool] = True,
    chains: int | None = None,
    sweeps: int = 10,
    seed: int = 0,
    validation: ArrayLike | None = None,
    progress: Progress | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> DBM:
    """A DBM trained on data (example, visible unit) of zeros and ones, or grey values in [0, 1].

    Every layer is first trained alone as an RBM in which the layers that will have a second neighbour count
    double; then all layers together, with `sweeps` mean-field sweeps in the data phase and persistent chains
    in the model phase. The options are those of `train_rbm`, one value for all stages or a sequence with one
    for each: the hidden layers, lowest first, and the joint training.

    >>> import numpy as np
    >>> stripes = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> train_dbm(stripes, hidden=(3, 2), epochs=2, batch=10)
    DBM 4-3-2
    """
    sizes = [whole("hidden", size) for size in hidden]
    depth = len(sizes)
    settings = settings_of_stages(
        depth + 1,
        method=method,
        k=k,
        epochs=epochs,
        batch=batch,
        learning_rate=learning_rate,
        schedule=schedule,
        momentum=momentum,
        weight_decay=weight_decay,
        averaged=averaged,
        centred=centred,
        chains=chains,
    )
    sweeps = whole("sweeps", sweeps)
    run = prepare(data, validation, settings, ("dbm", *sizes, sweeps), seed, progress, on_epoch, checkpoint)
    # The input from one side stands in for the other side too, except where there is no other side.
    copies = [(1 if layer == depth - 1 else 2, 1 if layer == 0 else 2) for layer in range(depth)]
    layers = train_stack(run, sizes, copies, None)
    joint = Stage(depth, "all layers", sweeps=sweeps, model=_dbm)
    return _dbm(fit(run, joint, lambda: composed(layers)))


def _dbm(machine: Machine) -> DBM:
    return DBM([coupling.weights for coupling in machine.couplings], machine.biases)


def composed(layers: Sequence[Machine]) -> Machine:
    """The machine of all layers from pretrained pairs; a bias that two of them learned is their mean."""
    between = [np.float32(0.5) * (low.biases[1] + high.biases[0]) for low, high in pairwise(layers)]
    weights = [layer.couplings[0].weights.copy() for layer in layers]
    biases = [layers[0].biases[0].copy(), *between, layers[-1].biases[1].copy()]
    return machine_of([*weights, *biases], (1,) * len(biases))
