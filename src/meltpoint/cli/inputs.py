"""Test and training data as the command takes them: a file, a named array in a file, or a data set's name."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meltpoint.errors import InputError, Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BINARIZE = ("stochastic", "threshold")


@dataclass(frozen=True)
class Data:
    """Test examples and, where they are known, training examples."""

    test: "NDArray[np.generic]"
    train: "NDArray[np.generic] | None"


def read_data(test: str, train: str | None, binarize: str | None, seed: int, progress: Progress) -> Data:
    """Read what the command's arguments name."""
    if binarize not in (None, *BINARIZE):
        raise InputError(
            found=f"--binarize {binarize}",
            expected="stochastic or threshold",
            remedy="leave it out for binary data",
        )
    from meltpoint.datasets.catalogue import load, names

    if test in names() and not Path(test).exists():
        dataset: Any = load(test, binarize=binarize or "stochastic", seed=seed, progress=progress)
        return Data(dataset.test, dataset.train if train is None else _read(train, binarize, seed, 1))
    return Data(_read(test, binarize, seed, 0), None if train is None else _read(train, binarize, seed, 1))


def _read(path: str, binarize: str | None, seed: int, stream: int) -> "NDArray[np.generic]":
    from meltpoint.datasets.binarize import stochastic, threshold
    from meltpoint.files.arrays import read_array

    array = read_array(path)
    high = array.max(initial=0)
    grey = array.ndim == 2 and array.min(initial=0) >= 0 and ((array != 0) & (array != 1)).any()
    if not grey:
        return array
    if binarize is None:
        raise InputError(
            found=f"{path} with values from {array.min():g} to {high:g}",
            expected="only 0 and 1",
            remedy="these are grey values: add --binarize stochastic (a seeded draw, the usual choice) or "
            "--binarize threshold",
        )
    white = 255.0 if high > 1 else 1.0
    return threshold(array, white) if binarize == "threshold" else stochastic(array, white, seed, (9, stream))
