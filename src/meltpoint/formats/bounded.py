"""Bounded reads: regular files only, and no more bytes than the header and the size of the file allow."""

import errno
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, SystemFailure

DEFLATE_RATIO = 1032
"""No deflate stream unpacks to more than this many bytes for each of its own."""

EXPANSION = 200
"""How many times its size in the file an array may have in memory: binary images as float64 reach 100."""

CEILING = 256 << 20
"""Bytes (256 MB) that any file may become in memory, however well it is compressed; the option `unpacked` raises it."""

_CHUNK = 1 << 20
_SHOWN = 40


@dataclass
class Allowance:
    """Bytes that the arrays of one file may still take in memory."""

    path: Path
    left: int

    @classmethod
    def of(cls, path: Path, file_size: int, ceiling: int = CEILING) -> "Allowance":
        """What the arrays of a file of this size may take."""
        return cls(path, max(ceiling, EXPANSION * file_size))

    def take(self, n_bytes: int) -> None:
        """Count an array that is about to be made; one too many is an InputError."""
        self.left -= n_bytes
        if self.left < 0:
            raise InputError(
                found=f"{self.path}, a small file whose arrays take {n_bytes:,} bytes and more",
                expected=f"arrays of {CEILING >> 20} MB, or {EXPANSION} times as large as their file",
                remedy="if they are what they should be, allow more megabytes with unpacked=…, or save them "
                "uncompressed, as uint8 where they are 0 and 1 (numpy.savez)",
            )


def open_regular(path: Path, *, follow_links: bool = True) -> BinaryIO:
    """A regular file, open for reading; OSError for a pipe, which could block forever, a device or a folder."""
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    )
    descriptor = os.open(path, flags | (0 if follow_links else getattr(os, "O_NOFOLLOW", 0)))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb")


def size_of(file: BinaryIO) -> int:
    """Size in bytes of an open file, on disk or in memory."""
    position = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(position)
    return size


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
    except (InputError, SystemFailure):
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
    stream: Readable, dtype: np.dtype[Any], shape: tuple[int, ...], available: int, allowance: Allowance
) -> NDArray[Any]:
    """An array of the promised shape, the rest of `stream`, in the machine's byte order.

    There can be at most `available` bytes, and the file's arrays may take no more than its allowance: a larger
    promise is refused before any memory is taken.
    """
    # Python's integers do not overflow; NumPy's product would.
    promised = math.prod(shape) * dtype.itemsize
    if promised > available:
        raise ValueError(
            f"its header promises an array {shape} of {dtype}, there are at most {available} bytes"
        )
    allowance.take(promised)
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


def described(value: object) -> str:
    """What an object from a file is, in a few words: nothing that it holds is turned into text.

    >>> described("weights"), described([[1] * 9] * 9)
    ("'weights'", 'a list')
    """
    if isinstance(value, str | bytes):
        return repr(value[:_SHOWN])
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 1 << 64):
        return repr(value)
    return f"a {type(value).__name__}"
