"""MNIST: 60,000 + 10,000 handwritten digits, 28 x 28, levels 0 to 255."""

from pathlib import Path

from meltpoint.data.dataset import Images
from meltpoint.formats.download import RemoteFile
from meltpoint.formats.load import read_array

# All three have the files as they were first published; which one answers does not matter, the checksums do.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
)

TRAIN = "train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
TEST = "t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
# Size, name and SHA256. A likelihood has no use for the two files with the labels.
PUBLISHED = ((9_912_422, *TRAIN), (1_648_877, *TEST))
FILES = tuple(
    RemoteFile(name, "mnist", size, f"sha256:{digest}", tuple(mirror + name for mirror in MIRRORS))
    for size, name, digest in PUBLISHED
)


def read(train: Path, test: Path) -> Images:
    """Grey images from the two idx files."""
    return Images(read_array(train), read_array(test), white=255, image_shape=(28, 28))
