"""Training of deep belief networks, one layer at a time (Hinton, Osindero and Teh 2006)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from numpy.typing import ArrayLike

from meltpoint.errors import Progress
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM
from meltpoint.progress import reports_progress
from meltpoint.training.loop import check_examples, training_run
from meltpoint.training.monitor import Epoch, report_epochs
from meltpoint.training.phases import TrainableDBM
from meltpoint.training.rbm import stack_architectures, train_stack
from meltpoint.training.settings import (
    DBN_DEFAULTS,
    DBN_HIDDEN,
    SEED,
    Method,
    Schedule,
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
    assert not isinstance(progress, bool), "reports_progress has made a callback of it"
    sizes = hidden_sizes(hidden)
    options = (method, k, epochs, batch, learning_rate, schedule, momentum, weight_decay, averaged, centred)
    settings = settings_of_stages(len(sizes), *options, chains)
    examples = check_examples(data, "data")
    architectures = stack_architectures((examples.width, *sizes))
    after_epoch = report_epochs(on_epoch)
    with training_run(
        examples, architectures, settings, seed, validation, progress, after_epoch, checkpoint
    ) as run:
        return _dbn(train_stack(run, len(sizes), _dbn))


def _dbn(layers: Sequence[TrainableDBM]) -> DBN:
    return DBN([layer.parameters for layer in layers[:-1]], top=RBM(*layers[-1].parameters))
