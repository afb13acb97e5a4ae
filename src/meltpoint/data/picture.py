"""Pictures of examples."""

import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.formats.atomic import atomic_write

INK, PAPER, LINE = 0, 255, 190
TARGET_PIXELS = 900


def mosaic(
    examples: NDArray[Any], image_shape: tuple[int, int], across: int | None = None
) -> NDArray[np.uint8]:
    """Grey picture (row, column) of examples, the largest value is ink, with lines between and around them.

    There are `across` of them in a row, or as many as make the whole nearly square.

    >>> mosaic(np.array([[1, 0]], np.uint8), (1, 2))
    array([[190, 190, 190, 190],
           [190,   0, 255, 190],
           [190, 190, 190, 190]], dtype=uint8)
    """
    values = np.asarray(examples, np.float64)
    low, high = float(values.min(initial=0.0)), float(values.max(initial=1.0))
    grey = np.round(INK + (PAPER - INK) * (1 - (values - low) / (high - low)))
    tiles = grey.astype(np.uint8).reshape(-1, *image_shape)
    count, rows, columns = tiles.shape
    across = across or math.ceil(math.sqrt(count * rows / columns))
    down = math.ceil(count / across)
    picture = np.full((down * (rows + 1) + 1, across * (columns + 1) + 1), LINE, np.uint8)
    for k, tile in enumerate(tiles):
        top, left = 1 + k // across * (rows + 1), 1 + k % across * (columns + 1)
        picture[top : top + rows, left : left + columns] = tile
    return picture


def write_png(picture: NDArray[np.uint8], path: Path) -> None:
    """Write a grey picture (row, column) as a PNG file, each pixel enlarged to a visible square."""
    if path.suffix.lower() != ".png":
        found = f"{path} to write a picture to"
        raise InputError(found=found, expected="a name that ends in .png", remedy="rename it")
    enlarged = np.kron(picture, np.ones((max(1, TARGET_PIXELS // max(picture.shape)),) * 2, np.uint8))
    with atomic_write(path) as file:
        file.write(to_png(enlarged))


def to_png(pixels: NDArray[np.uint8]) -> bytes:
    """A grey picture (row, column) as the bytes of a PNG file."""
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 9)
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b"")):
        png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return png
