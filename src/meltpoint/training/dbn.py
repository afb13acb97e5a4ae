"""Training of deep belief networks, one layer at a time (Hinton, Osindero and Teh 2006)."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from meltpoint.training.examples import checked
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
    progress: Progress | None = None,
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
    layers = train_stack(checked(data, "data"), sizes, settings, [(1, 1)] * len(sizes), seed, progress)
    directed = [layer.parameters for layer in layers[:-1]]
    return DBN(directed, top=RBM(*layers[-1].parameters))
