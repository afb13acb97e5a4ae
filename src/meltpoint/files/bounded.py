"""Reading no more than a header promises, and believing the header no further than the bytes there are."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError

DEFLATE_RATIO = 1032
"""No deflate stream unpacks to more than this many bytes for each of its own."""

_CHUNK = 1 << 20


class Readable(Protocol):
    """An open file, zip entry or gzip stream."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        ...


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a parser raises on a damaged file into an InputError that names the file."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as problem:
        raise InputError(
            found=f"{path}, too large for the memory of this machine",
            expected=f"a {what} that fits in memory",
            remedy="save a part of it",
        ) from problem
    # The parsers underneath (zipfile, gzip, SciPy, NumPy) raise a dozen unrelated types on hostile bytes.
    except Exception as problem:
        raise InputError(
            found=f"{path}, truncated or damaged ({str(problem) or type(problem).__name__})",
            expected=f"a complete {what}",
            remedy="copy, download or save it again",
        ) from problem


def read_promised(
    stream: Readable, dtype: np.dtype[Any], shape: tuple[int, ...], available: int
) -> NDArray[Any]:
    """An array of the promised shape, the rest of `stream`, in the machine's byte order.

    There can be at most `available` bytes: a larger promise is refused before any memory is taken.
    """
    # Python's integers do not overflow; NumPy's product would.
    promised = math.prod(shape) * dtype.itemsize
    if promised > available:
        raise ValueError(
            f"its header promises an array {shape} of {dtype}, there are at most {available} bytes"
        )
    buffer = np.empty(promised, np.uint8)
    filled = 0
    while filled < promised:
        data = stream.read(min(_CHUNK, promised - filled))
        if not data:
            raise ValueError(f"its header promises {promised} bytes, it ends after {filled}")
        buffer[filled : filled + len(data)] = np.frombuffer(data, np.uint8)
        filled += len(data)
    # Reaching the end is also what makes zip and gzip streams check their sums.
    if stream.read(1):
        raise ValueError(f"its header promises {promised} bytes, there are more")
    return buffer.view(dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
