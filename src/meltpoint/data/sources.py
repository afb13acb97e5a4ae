"""Where the data sets come from: the published files of MNIST and Omniglot, and two sets that need no download."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meltpoint.data.dataset import Images
from meltpoint.errors import InputError
from meltpoint.formats.download import RemoteFile, checksum_of
from meltpoint.formats.load import read_array

# All three have MNIST's files as they were first published; which one answers does not matter, the checksums do.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
)

_TRAIN = "train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
_TEST = "t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
MNIST = tuple(  # a likelihood has no use for the two files with the labels
    RemoteFile(name, "mnist", size, f"sha256:{digest}", tuple(mirror + name for mirror in MIRRORS))
    for size, name, digest in ((9_912_422, *_TRAIN), (1_648_877, *_TEST))
)
CHARDATA = RemoteFile(
    name="chardata.mat",
    folder="omniglot",
    size=None,
    # The publisher gives none: this is what another project's loader checks at the same address.
    checksum="md5:21ecaf34373511aa7691cf2e0802aa3d",
    urls=(
        "https://raw.githubusercontent.com/yburda/iwae/master/datasets/OMNIGLOT/chardata.mat",
        "https://github.com/yburda/iwae/raw/master/datasets/OMNIGLOT/chardata.mat",
    ),
    only_this=False,
)
OMNIGLOT = (CHARDATA,)
SIDE = 28
N_TRAIN, N_TEST = 24_345, 8_070
"""Examples of Omniglot, in the split of the paper."""
N_DIGITS_TRAIN = 1500
BARS_SIDE = 4

_LAYOUT = f"data ({SIDE * SIDE}, {N_TRAIN}) and testdata ({SIDE * SIDE}, {N_TEST}), values from 0 to 1"


def mnist(train: Path, test: Path) -> Images:
    """60,000 + 10,000 handwritten digits, 28 x 28, levels 0 to 255, from the two idx files."""
    return Images(read_array(train), read_array(test), white=255, image_shape=(SIDE, SIDE))


def omniglot(path: Path) -> Images:
    """24,345 + 8,070 characters of 50 alphabets at 28 x 28, from a file with the layout of `chardata.mat`."""
    try:
        train, test = _upright(path, "data", N_TRAIN), _upright(path, "testdata", N_TEST)
    except InputError as problem:
        raise InputError(
            found=f"{problem.found}, a file with {checksum_of(path, CHARDATA)}",
            expected=f"{_LAYOUT}, as in the published file with {CHARDATA.checksum}",
            remedy=f"get it from {CHARDATA.urls[0]}",
        ) from problem
    return Images(train, test, white=1, image_shape=(SIDE, SIDE))


def _upright(path: Path, name: str, n_examples: int) -> NDArray[np.float32]:
    """Levels (example, pixel) of an array that has an image in each column, its pixels column by column."""
    stored = read_array(path, name)
    wrong = None
    if stored.shape != (SIDE * SIDE, n_examples):
        wrong = f"{name} of shape {stored.shape} in {path}"
    elif not ((stored >= 0) & (stored <= 1)).all():
        wrong = f"{name} outside of 0 to 1 in {path}"
    if wrong is not None:
        raise InputError(found=wrong, expected=_LAYOUT, remedy="use the published file")
    images = stored.T.astype(np.float32).reshape(n_examples, SIDE, SIDE)
    return images.transpose(0, 2, 1).reshape(n_examples, SIDE * SIDE)


def digits() -> Images:
    """1,797 handwritten digits, 8 x 8, levels 0 to 16: 1,500 to train, 297 to test.

    They are the test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI Machine
    Learning Repository, CC BY 4.0), as scikit-learn has them.
    """
    with np.load(Path(__file__).with_name("digits.npz"), allow_pickle=False) as file:
        levels = file["levels"]
    # The file has one writer after the other, so the split is a shuffle: the order of raw integers of PCG64,
    # which no NumPy version may change.
    levels = levels[np.argsort(np.random.PCG64(0).random_raw(len(levels)), kind="stable")]
    return Images(levels[:N_DIGITS_TRAIN], levels[N_DIGITS_TRAIN:], white=16, image_shape=(8, 8))


def bars_and_stripes() -> Images:
    """All distinct 4 x 4 images made of full rows or of full columns: 30, each once, in both splits.

    2^4 choices of rows and as many of columns; the empty and the full image are made both ways, counted once.
    """
    choices = np.array([[c >> bit & 1 for bit in range(BARS_SIDE)] for c in range(2**BARS_SIDE)], np.uint8)
    stripes, bars = np.repeat(choices, BARS_SIDE, axis=1), np.tile(choices, (1, BARS_SIDE))
    patterns = np.unique(np.concatenate([stripes, bars]), axis=0)
    return Images(patterns, patterns.copy(), white=1, image_shape=(BARS_SIDE, BARS_SIDE))
