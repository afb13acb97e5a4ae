"""What data sets there are, and `load`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from meltpoint.arguments import Seed, public
from meltpoint.data import sources
from meltpoint.data.dataset import Binarize, Dataset, Images, binarized
from meltpoint.errors import InputError, Progress
from meltpoint.formats.download import RemoteFile, obtain


@dataclass(frozen=True)
class Entry:
    """What is known of a data set before it is read; `read` takes the paths of `files`, in their order."""

    name: str
    about: str
    image_shape: tuple[int, int]
    n_train: int
    n_test: int
    read: Callable[..., Images]
    files: tuple[RemoteFile, ...] = ()


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("mnist", "handwritten digits", (28, 28), 60_000, 10_000, sources.mnist, sources.MNIST),
        Entry(
            "omniglot", "letters of 50 alphabets", (28, 28), 24_345, 8_070, sources.omniglot, sources.OMNIGLOT
        ),
        Entry("digits", "small handwritten digits", (8, 8), 1_500, 297, sources.digits),
        Entry("bars-and-stripes", "rows or columns, every pattern", (4, 4), 30, 30, sources.bars_and_stripes),
    )
}


def names() -> tuple[str, ...]:
    """Names that `load` takes.

    >>> names()
    ('mnist', 'omniglot', 'digits', 'bars-and-stripes')
    """
    return tuple(ENTRIES)


def entry_of(name: str) -> Entry:
    """The entry of that name, or an error that says which names there are."""
    known, path = ", ".join(ENTRIES), os.fspath(name)
    if os.sep in path or Path(path).is_file():
        raise InputError(
            found=f"{path!r}, a path",
            expected=f"the name of a data set, {known}",
            remedy=f"read a file with meltpoint.datasets.read({path!r})",
        )
    if name not in ENTRIES:
        near = difflib.get_close_matches(name, ENTRIES, n=1)
        remedy = f"did you mean {near[0]}?" if near else "choose one of these"
        raise InputError(found=f"a data set named {name!r}", expected=f"one of {known}", remedy=remedy)
    return ENTRIES[name]


def paths_of(entry: Entry, progress: Progress | None = None) -> list[Path]:
    """Paths of the data set's files, downloaded if they are not here yet."""
    return [obtain(file, progress) for file in entry.files]


@public
def load(
    name: str, *, binarize: Binarize = "stochastic", seed: Seed = 0, progress: Progress | bool | None = None
) -> Dataset:
    """The data set of that name, as zeros and ones; downloads what is not here yet.

    Parameters
    ----------
    name
        One of `names()`.
    binarize
        "stochastic" switches each pixel on with a probability of its grey value, "threshold" where the grey value is
        above one half.
    seed
        Seed of the stochastic draw, which is fixed; `Dataset.epoch` gives a new draw for each training epoch.
    progress
        Called with (task, done, total) during a download.

    >>> load("digits").train.shape
    (1500, 64)
    """
    assert not isinstance(progress, bool), "public() has made a callback of it"
    entry = entry_of(name)
    return binarized(entry.name, entry.read(*paths_of(entry, progress)), binarize, seed)
