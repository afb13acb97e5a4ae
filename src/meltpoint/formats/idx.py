"""MNIST's idx files: a magic number, the lengths of the axes, the numbers. Images are flattened to (example, pixel)."""

import math
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.formats.bounded import read_promised
from meltpoint.formats.format import Format, without_name
from meltpoint.formats.source import Source

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""The third byte of an idx file, and the numbers it announces."""


def _recognises(source: Source) -> bool:
    head = source.head
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in TYPES and head[3] > 0


def _array(source: Source, name: str | None) -> NDArray[Any]:
    without_name(source, name)
    stream = source.stream()
    magic = stream.read(4)
    shape = struct.unpack(f">{magic[3]}I", stream.read(4 * magic[3]))
    if len(shape) > 2:
        # Each example is one row, however many axes it has.
        shape = (shape[0], math.prod(shape[1:]))
    return read_promised(stream, np.dtype(TYPES[magic[2]]), shape, source.most, source.allowance)


FORMAT = Format("MNIST idx file", (".idx", "-ubyte"), _recognises, array=_array)
