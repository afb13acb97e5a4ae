"""A data set: binary images, the grey images that they were made from, and how."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.layers.unit import States
from meltpoint.randomness import check_seed

Levels: TypeAlias = NDArray[Any]
"""Grey images (example, pixel) as their file stores them: 0 is off, the data set's `white` is fully on."""

Binarize: TypeAlias = Literal["stochastic", "threshold"]

ROWS = 1000
"""Examples handled at once. Even, so that the draw below does not depend on it."""

# The first number of a stream: draws for different purposes never share random numbers.
TRAIN, TEST, EPOCH = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Images:
    """Grey images of both splits, (example, pixel) row by row, with levels from 0 to `white`."""

    train: Levels
    test: Levels
    white: float
    image_shape: tuple[int, int]

    @property
    def binary(self) -> bool:
        """Whether there is nothing between off and on, so that binarisation changes nothing."""
        return self.white == 1 and np.issubdtype(self.train.dtype, np.integer)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Binary images: `train` and `test` are uint8 zeros and ones (example, pixel), pixels row by row.

    >>> from meltpoint import datasets
    >>> print(datasets.load("bars-and-stripes"))
    bars-and-stripes: 30 training and 30 test examples of 4 x 4 pixels
    50.0% of the training pixels are on; binary from the start
    """

    name: str
    train: States = field(repr=False)
    test: States = field(repr=False)
    image_shape: tuple[int, int]
    binarize: Binarize
    seed: int
    images: Images = field(repr=False)

    def __str__(self) -> str:
        rows, columns = self.image_shape
        if self.images.binary:
            how = "binary from the start"
        elif self.binarize == "threshold":
            how = "on where the grey value is above one half"
        else:
            how = f"stochastic binarisation, seed {self.seed}"
        return (
            f"{self.name}: {len(self.train):,} training and {len(self.test):,} test examples"
            f" of {rows} x {columns} pixels\n{self.train.mean():.1%} of the training pixels are on; {how}"
        )

    @property
    def grey_train(self) -> NDArray[np.float32]:
        """Grey training images (example, pixel), from 0 to 1. Made anew at each call."""
        return self.images.train.astype(np.float32) / np.float32(self.images.white)

    @property
    def grey_test(self) -> NDArray[np.float32]:
        """Grey test images (example, pixel), from 0 to 1. Made anew at each call."""
        return self.images.test.astype(np.float32) / np.float32(self.images.white)

    def epoch(self, seed: int, number: int) -> States:
        """Training images (example, pixel) for one epoch: a stochastic draw that belongs to (seed, number).

        Whichever way the data set was loaded, these are draws from the grey values, independent of `train`.

        >>> from meltpoint import datasets
        >>> digits = datasets.load("digits")
        >>> bool((digits.epoch(0, 1) == digits.epoch(0, 2)).all())
        False
        """
        stream = (EPOCH, check_seed(number, "epoch number"))
        return stochastic(self.images.train, self.images.white, check_seed(seed), stream)


def stochastic(levels: Levels, white: float, seed: int, stream: tuple[int, int]) -> States:
    """Bits (example, pixel), each on with probability level / white.

    The draw depends on (seed, stream) alone, not on the version of anything: PCG64 promises the same integers
    for a seed forever, which the methods of NumPy's generators do not.

    >>> stochastic(np.array([[0, 255]]), white=255, seed=0, stream=(0, 0))
    array([[0, 1]], dtype=uint8)
    """
    source = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=stream))
    bits = np.empty(levels.shape, np.uint8)
    for first in range(0, len(levels), ROWS):
        block = levels[first : first + ROWS]
        words = np.asarray(source.random_raw((block.size + 1) // 2), "<u8").view("<u4")
        uniform = words[: block.size].reshape(block.shape)
        np.less(uniform, block * (2.0**32 / white), out=bits[first : first + ROWS])
    return bits


def threshold(levels: Levels, white: float) -> States:
    """Bits (example, pixel), on where the level is more than half of white."""
    return (levels > white / 2).astype(np.uint8)


def binarized(name: str, images: Images, binarize: Binarize, seed: int) -> Dataset:
    """The data set of these grey images under one binarisation; its arrays are read-only."""
    if binarize == "threshold":
        train, test = threshold(images.train, images.white), threshold(images.test, images.white)
    else:
        train = stochastic(images.train, images.white, seed, (TRAIN, 0))
        test = stochastic(images.test, images.white, seed, (TEST, 0))
    for array in (train, test, images.train, images.test):
        array.flags.writeable = False
    return Dataset(name, train, test, images.image_shape, binarize, seed, images)
