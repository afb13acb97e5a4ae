"""Training of deep belief networks, one layer at a time (Hinton, Osindero and Teh 2006)."""

import os
from collections.abc import Callable, Sequence

from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from meltpoint.training.epoch import Epoch
from meltpoint.training.machine import Machine
from meltpoint.training.run import prepare
from meltpoint.training.settings import Method, Schedule, settings_of_stages, whole
from meltpoint.training.stack import train_stack


def train_dbn(
    data: ArrayLike,
    hidden: Sequence[int] = (500, 2000),
    *,
    method: Method | Sequence[Method] = "pcd",
    k: int | Sequence[int] = 1,
    epochs: int | Sequence[int] = 30,
    batch: int | Sequence[int] = 100,
    learning_rate: float | Sequence[float] = 0.2,
    schedule: Schedule | Sequence[Schedule] = "linear",
    momentum: float | Sequence[float] = 0.0,
    weight_decay: float | Sequence[float] = 1e-4,
    averaged: float | Sequence[float] = 0.2,
    centred: bool | Sequence[bool] = True,
    chains: int | None = None,
    seed: int = 0,
    validation: ArrayLike | None = None,
    progress: Progress | None = None,
    on_epoch: Callable[[Epoch], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> DBN:
    """A DBN trained greedily on data (example, visible unit) of zeros and ones, or grey values in [0, 1].

    Every layer is first an RBM on draws from the layers below. All but the highest then become directed: the
    RBM's weights and visible biases generate, the same weights and its hidden biases recognise. The options
    are those of `train_rbm`, one value for all layers or a sequence with one for each, lowest first.

    >>> import numpy as np
    >>> stripes = np.repeat([[0, 0, 1, 1], [1, 1, 0, 0]], 50, axis=0)
    >>> train_dbn(stripes, hidden=(3, 2), epochs=2, batch=10)
    DBN 4-3-2
    """
    sizes = [whole("hidden", size) for size in hidden]
    settings = settings_of_stages(
        len(sizes),
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
    run = prepare(data, validation, settings, ("dbn", *sizes), seed, progress, on_epoch, checkpoint)
    return _dbn(train_stack(run, sizes, [(1, 1)] * len(sizes), _dbn))


def _dbn(machines: Sequence[Machine]) -> DBN:
    return DBN([machine.parameters for machine in machines[:-1]], top=RBM(*machines[-1].parameters))
