"""From grey images to zeros and ones."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.layers.unit import Bits

Levels: TypeAlias = NDArray[Any]
"""Grey images (example, pixel) as their file stores them: 0 is off, the data set's `white` is fully on."""

Binarize: TypeAlias = Literal["stochastic", "threshold"]

ROWS = 1000
"""Examples handled at once. Even, so that the draw below does not depend on it."""


def stochastic(levels: Levels, white: float, seed: int, stream: tuple[int, int]) -> Bits:
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


def threshold(levels: Levels, white: float) -> Bits:
    """Bits (example, pixel), on where the level is more than half of white.

    >>> threshold(np.array([[0, 127, 128, 255]]), white=255)
    array([[0, 0, 1, 1]], dtype=uint8)
    """
    return (levels > white / 2).astype(np.uint8)
