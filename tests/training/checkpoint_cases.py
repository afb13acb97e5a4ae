"""Small trainings of every kind, and what tests of their checkpoints share."""

from functools import partial

import numpy as np

from meltpoint.training.train import train_dbm, train_dbn, train_rbm
from training.repeats import parameters

DATA = (np.random.default_rng(0).random((60, 9)) < 0.3).astype(np.uint8)
GREY = np.random.default_rng(1).random((60, 9))
OPTIONS = {"epochs": 2, "batch": 10, "seed": 5, "averaged": 0.5, "momentum": 0.5}
TRAININGS = {
    "cd": partial(train_rbm, DATA, 4, method="cd", k=2, **OPTIONS),
    "pcd, grey": partial(train_rbm, GREY, 4, chains=7, **OPTIONS),
    "dbn": partial(train_dbn, GREY, (5, 4), **OPTIONS),
    "dbm": partial(train_dbm, DATA, (5, 4), sweeps=2, **OPTIONS),
}


def entries(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class StoppedError(Exception):
    """Stands for anything that ends a process."""


def assert_same_bits(one, other):
    for a, b in zip(parameters(one), parameters(other), strict=True):
        np.testing.assert_array_equal(a, b)
