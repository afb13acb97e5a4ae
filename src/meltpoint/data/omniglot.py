"""Omniglot at 28 x 28: 24,345 + 8,070 characters of 50 alphabets, in the split of the paper."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meltpoint.data.dataset import Images
from meltpoint.errors import InputError
from meltpoint.formats.download import RemoteFile, checksum_of
from meltpoint.formats.load import read_array

SIDE = 28
N_TRAIN, N_TEST = 24_345, 8_070

PUBLISHED = RemoteFile(
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
FILES = (PUBLISHED,)
LAYOUT = f"data ({SIDE * SIDE}, {N_TRAIN}) and testdata ({SIDE * SIDE}, {N_TEST}), values from 0 to 1"


def read(path: Path) -> Images:
    """Grey images from a file with the layout of the published `chardata.mat`."""
    try:
        train, test = _upright(path, "data", N_TRAIN), _upright(path, "testdata", N_TEST)
    except InputError as problem:
        raise InputError(
            found=f"{problem.found}, a file with {checksum_of(path, PUBLISHED)}",
            expected=f"{LAYOUT}, as in the published file with {PUBLISHED.checksum}",
            remedy=f"get it from {PUBLISHED.urls[0]}",
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
        raise InputError(found=wrong, expected=LAYOUT, remedy="use the published file")
    images = stored.T.astype(np.float32).reshape(n_examples, SIDE, SIDE)
    return images.transpose(0, 2, 1).reshape(n_examples, SIDE * SIDE)
