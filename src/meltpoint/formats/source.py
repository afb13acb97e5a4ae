"""A file as its readers see it: opened once, unpacked from gzip and tar, and read within bounds.

Only regular files are opened, and no array takes memory before the size of the file allows it.
"""

import errno
import gzip
import io
import math
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, BinaryIO, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError, SystemFailure

DEFLATE_RATIO = 1032
"""No deflate stream unpacks to more than this many bytes for each of its own."""

EXPANSION = 200
"""How many times its size in the file an array may have in memory: binary images as float64 reach 100."""

CEILING = 256 << 20
"""Bytes (256 MB) that any file may become in memory, however well it is compressed; the option `unpacked` raises it."""

HEAD = 4096  # bytes by which a file is recognised
_AT_ONCE = 1 << 20
_MOST_MEMBERS = 1000
_BOM = b"\xef\xbb\xbf"

Found = TypeVar("Found")


class Source:
    """A file, or what was packed in one: `name` says where it lies. What no reader asks for is not read.

    `content` is that of a file in an archive, or an open file; `ceiling` is how many bytes it may be unpacked to.
    """

    def __init__(
        self,
        path: Path,
        name: str | None = None,
        content: bytes | BinaryIO | None = None,
        ceiling: int = CEILING,
    ) -> None:
        self.path, self.name, self.ceiling = path, name or str(path), ceiling
        self.closing = ExitStack()
        if content is None:
            content = self.closing.enter_context(opened(path))
        self._stored = io.BytesIO(content) if isinstance(content, bytes) else content
        self.stored_size = size_of(self._stored)
        self.left = max(ceiling, EXPANSION * self.stored_size)
        """Bytes that its arrays may still take in memory."""
        self._is_gzip = self._stored.read(2) == b"\x1f\x8b"
        self._found: dict[Callable[[Self], Any], Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.close()  # once: closing again does nothing

    def stream(self) -> BinaryIO:
        """The content from its beginning, to be read once."""
        self._stored.seek(0)
        return gzip.GzipFile(fileobj=self._stored) if self._is_gzip else self._stored  # pyright: ignore

    def open(self) -> BinaryIO:
        """The content from its beginning, as a file to seek in."""
        return io.BytesIO(self.data) if self._is_gzip else self.stream()

    @cached_property
    def head(self) -> bytes:
        with reading(self.path, "gzip file" if self._is_gzip else "file"):
            return self.stream().read(HEAD)

    @cached_property
    def data(self) -> bytes:
        if not self._is_gzip:
            return self.stream().read()
        content, stream = io.BytesIO(), self.stream()
        with reading(self.path, "gzip file"):
            while part := stream.read(_AT_ONCE):
                if content.tell() + len(part) > self.ceiling:
                    raise InputError(
                        found=f"{self.name}, a gzip file that unpacks to more than {self.ceiling:,} bytes",
                        expected=f"at most {self.ceiling >> 20} MB",
                        remedy="if you trust it, allow more megabytes with unpacked=…, or unpack it with gunzip first",
                    )
                content.write(part)
        return content.getvalue()

    @property
    def size(self) -> int:
        return len(self.data) if self._is_gzip else self.stored_size

    @property
    def most(self) -> int:
        """Bytes that the content cannot exceed, known without unpacking it."""
        return self.stored_size * (DEFLATE_RATIO if self._is_gzip else 1)

    def take(self, n_bytes: int) -> None:
        """Count an array that is about to be made; one too many is an InputError."""
        self.left -= n_bytes
        if self.left < 0:
            raise InputError(
                found=f"{self.path}, a small file whose arrays take {n_bytes:,} bytes and more",
                expected=f"arrays of {self.ceiling >> 20} MB, or {EXPANSION} times as large as their file",
                remedy="if you trust it, allow more megabytes with unpacked=…, or save them uncompressed, as "
                "uint8 where they are 0 and 1 (numpy.savez)",
            )

    @cached_property
    def numbers(self) -> bytes:
        """The text, counted as the array of numbers that it may become: eight bytes for a digit and a blank."""
        self.take(4 * self.size)
        return self.text

    @cached_property
    def is_text(self) -> bool:
        """Whether the first bytes are text: no control characters but blanks and ends of lines."""
        head = self.head.removeprefix(_BOM)
        return bool(head) and not any(byte < 32 and byte not in b"\t\n\v\f\r" for byte in head)

    @cached_property
    def text(self) -> bytes:
        return self.data.removeprefix(_BOM)

    @cached_property
    def first_lines(self) -> bytes:
        """The first bytes of a text, from its first line that is not blank."""
        return self.head.removeprefix(_BOM).lstrip()

    def once(self, find: Callable[[Self], Found]) -> Found:
        """What this function finds in the file; found once, however many formats ask."""
        if find not in self._found:
            self._found[find] = find(self)
        return self._found[find]

    def refusal(self, found: str, expected: str, remedy: str) -> InputError:
        """The error for something in this file."""
        return InputError(found=f"{found} in {self.name}", expected=expected, remedy=remedy)

    def members(self) -> Iterator["Source"]:
        """The files of a tar archive, none if it is no archive."""
        if self.head[257:262] != b"ustar":
            return
        with reading(self.path, "tar archive"), tarfile.open(fileobj=self.open(), mode="r:") as archive:
            for number, member in enumerate(archive):
                if number >= _MOST_MEMBERS:
                    raise ValueError(f"more than {_MOST_MEMBERS} files")
                extracted = archive.extractfile(member) if member.isreg() and not member.issparse() else None
                if extracted is not None:
                    # A header may promise more than the archive has.
                    content = extracted.read(min(member.size, self.size))
                    yield Source(self.path, f"{self.path}:{member.name}", content, self.ceiling)


def source_of_object() -> Source:
    """Stands in messages for an object that is not from a file; nothing limits its size."""
    source = Source(Path(), "the object", b"")
    source.stored_size = 1 << 62
    return source


def opened(path: Path, *, may_be_empty: bool = False) -> BinaryIO:
    """A regular file with content, open for reading; any other is an InputError."""
    shown = repr(os.fspath(path))
    try:
        is_special = path.exists() and not path.is_file()
        file = None if is_special else open_regular(path)
    except FileNotFoundError as problem:
        raise InputError(
            found=f"no file {shown}", expected="an existing file", remedy="check the path"
        ) from problem
    except (OSError, ValueError) as problem:
        raise InputError(
            found=f"{shown}, which cannot be opened ({problem})",
            expected="a readable file",
            remedy="check the path and its permissions",
        ) from problem
    if file is None:
        kind = "a folder" if path.is_dir() else "not a regular file"
        found, remedy = f"{shown}, {kind}", "name a file"
    elif size_of(file) == 0 and not may_be_empty:
        file.close()
        found, remedy = f"{shown}, an empty file", "copy, download or save it again"
    else:
        return file
    raise InputError(found=found, expected="a file with a model or data", remedy=remedy)


def open_regular(path: Path, *, follow_links: bool = True) -> BinaryIO:
    """A regular file, open for reading; OSError for a pipe, which could block forever, a device or a folder."""
    names = (
        ("NONBLOCK", "CLOEXEC", "BINARY") if follow_links else ("NONBLOCK", "CLOEXEC", "BINARY", "NOFOLLOW")
    )
    descriptor = os.open(path, os.O_RDONLY | sum(getattr(os, f"O_{name}", 0) for name in names))
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
    source: Source, stream: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...], available: int
) -> NDArray[Any]:
    """An array of the promised shape, the rest of `stream`, in the machine's byte order.

    There can be at most `available` bytes, and the file's arrays may take no more than it allows: a larger promise is
    refused before any memory is taken.
    """
    # Python's integers do not overflow; NumPy's product would.
    promised = math.prod(shape) * dtype.itemsize
    if promised > available:
        raise ValueError(
            f"its header promises an array {shape} of {dtype}, there are at most {available} bytes"
        )
    source.take(promised)
    buffer = np.empty(promised, np.uint8)
    filled = 0
    while filled < promised:
        data = stream.read(min(_AT_ONCE, promised - filled))
        if not data:
            raise ValueError(f"its header promises {promised} bytes, it ends after {filled}")
        buffer[filled : filled + len(data)] = np.frombuffer(data, np.uint8)
        filled += len(data)
    # Reaching the end is also what makes zip and gzip streams check their sums.
    if stream.read(1):
        raise ValueError(f"its header promises {promised} bytes, there are more")
    return buffer.view(dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
