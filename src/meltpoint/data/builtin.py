"""The data sets that need no download."""

from pathlib import Path

import numpy as np

from meltpoint.data.dataset import Images

N_DIGITS_TRAIN = 1500
SIDE = 4


def digits() -> Images:
    """1,797 handwritten digits, 8 x 8, levels 0 to 16: 1,500 to train, 297 to test.

    They are the test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI Machine
    Learning Repository, CC BY 4.0), as scikit-learn has them.
    """
    with np.load(Path(__file__).with_name("digits.npz"), allow_pickle=False) as file:
        levels = file["levels"]
    # The file has one writer after the other, so the split is a shuffle: the order of raw integers of PCG64,
    # which no NumPy version may change.
    order = np.argsort(np.random.PCG64(0).random_raw(len(levels)), kind="stable")
    levels = levels[order]
    return Images(levels[:N_DIGITS_TRAIN], levels[N_DIGITS_TRAIN:], white=16, image_shape=(8, 8))


def bars_and_stripes() -> Images:
    """All distinct 4 x 4 images made of full rows or of full columns: 30, each once, in both splits.

    2^4 choices of rows and as many of columns; the empty and the full image are made both ways, counted once.
    """
    choices = np.array([[c >> bit & 1 for bit in range(SIDE)] for c in range(2**SIDE)], np.uint8)
    stripes = np.repeat(choices, SIDE, axis=1)
    bars = np.tile(choices, (1, SIDE))
    patterns = np.unique(np.concatenate([stripes, bars]), axis=0)
    return Images(patterns, patterns.copy(), white=1, image_shape=(SIDE, SIDE))
