"""A foreign file as its readers see it: its first bytes, its size, its content; gzip is undone first."""

import io
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from meltpoint.errors import InputError
from meltpoint.formats.bounded import open_regular, reading, size_of
from meltpoint.formats.formats import first_bytes

_HEAD = 4096
_UNPACKED, _RATIO = 1 << 24, 20
"""Bytes (16 MB) that any gzip file may become, and how many times its size: numbers as text reach 10."""


@dataclass(frozen=True)
class Source:
    """A file at `path`, or what was packed in one: then `content` is set and `name` says where it lay."""

    path: Path
    name: str
    content: bytes | None = None

    @cached_property
    def head(self) -> bytes:
        """The first bytes."""
        return first_bytes(self.path) if self.content is None else self.content[:_HEAD]

    @cached_property
    def size(self) -> int:
        """Size in bytes."""
        return self.path.stat().st_size if self.content is None else len(self.content)

    @cached_property
    def data(self) -> bytes:
        """The whole content."""
        if self.content is not None:
            return self.content
        with self.open() as file:
            return file.read()

    @cached_property
    def text(self) -> bool:
        """Whether the first bytes are text: no control characters but blanks and ends of lines."""
        head = self.head.removeprefix(b"\xef\xbb\xbf")
        return bool(head) and not any(byte < 32 and byte not in b"\t\n\v\f\r" for byte in head)

    @cached_property
    def first_line(self) -> bytes:
        """The first line with something in it, without the blanks around it."""
        return self.head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].strip()

    def open(self) -> BinaryIO:
        """The content as a file."""
        return open_regular(self.path) if self.content is None else io.BytesIO(self.content)


def open_source(path: Path) -> Source:
    """The file at a path, with gzip undone."""
    source = Source(path, str(path))
    if not source.head.startswith(b"\x1f\x8b"):
        return source
    with reading(path, "gzip file"):
        return Source(path, str(path), _unpacked(path))


def _unpacked(path: Path) -> bytes:
    with open_regular(path) as file:
        limit = max(_UNPACKED, _RATIO * size_of(file))
        packed = file.read()
    parts: list[bytes] = []
    total = 0
    # A gzip file may be several streams, one after the other.
    while packed:
        stream = zlib.decompressobj(wbits=31)
        parts.append(stream.decompress(packed, limit + 1 - total))
        total += len(parts[-1])
        if total > limit:
            raise InputError(
                found=f"{path}, a small gzip file that becomes more than {limit:,} bytes",
                expected=f"at most {_RATIO} times its size",
                remedy="if it is what it should be, unpack it with gunzip first",
            )
        if not stream.eof:
            raise ValueError("it ends too early")
        packed = stream.unused_data.lstrip(b"\0")
    return b"".join(parts)
