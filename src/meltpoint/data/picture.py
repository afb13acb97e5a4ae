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
from meltpoint.layers.unit import Bits

INK, PAPER, LINE = 0, 255, 190
TARGET_PIXELS = 900


def mosaic(examples: Bits, image_shape: tuple[int, int], across: int | None = None) -> NDArray[np.uint8]:
    """Grey picture (row, column) of binary examples, ink on paper, lines between them.

    There are `across` of them in a row, or as many as make the whole nearly square.

    >>> mosaic(np.array([[1, 0]], np.uint8), (1, 2))
    array([[190, 190, 190, 190],
           [190,   0, 255, 190],
           [190, 190, 190, 190]], dtype=uint8)
    """
    tiles = np.where(examples, INK, PAPER).astype(np.uint8)
    return side_by_side(tiles.reshape(-1, *image_shape), LINE, across)


def side_by_side(tiles: NDArray[Any], line: float, across: int | None = None) -> NDArray[Any]:
    """One picture (row, column) of tiles (tile, row, column), with lines of this value between and around them."""
    count, rows, columns = tiles.shape
    across = across or math.ceil(math.sqrt(count * rows / columns))
    down = math.ceil(count / across)
    picture = np.full((down * (rows + 1) + 1, across * (columns + 1) + 1), line, tiles.dtype)
    for i, tile in enumerate(tiles):
        top, left = 1 + i // across * (rows + 1), 1 + i % across * (columns + 1)
        picture[top : top + rows, left : left + columns] = tile
    return picture


def write_png(picture: NDArray[np.uint8], path: Path) -> None:
    """Write a grey picture (row, column) as a PNG file, each pixel enlarged to a visible square."""
    if path.suffix.lower() != ".png":
        raise InputError(
            found=f"{path} to write a picture to", expected="a name that ends in .png", remedy="rename it"
        )
    enlarged = np.kron(picture, np.ones((max(1, TARGET_PIXELS // max(picture.shape)),) * 2, np.uint8))
    with atomic_write(path) as file:
        file.write(to_png(enlarged))


def to_png(pixels: NDArray[np.uint8]) -> bytes:
    """A grey picture (row, column) as the bytes of a PNG file."""
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
