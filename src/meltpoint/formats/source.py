"""A file as its readers see it: opened once, whatever many formats ask about it. Gzip and tar are undone here."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

from meltpoint.errors import InputError
from meltpoint.formats.bounded import CEILING, DEFLATE_RATIO, Allowance, open_regular, reading, size_of

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
        """The first bytes."""
        with reading(self.path, "gzip file" if self._is_gzip else "file"):
            return self.stream().read(HEAD)

    @cached_property
    def data(self) -> bytes:
        """The whole content."""
        if not self._is_gzip:
            return self.stream().read()
        content, stream = io.BytesIO(), self.stream()
        with reading(self.path, "gzip file"):
            while part := stream.read(_AT_ONCE):
                if content.tell() + len(part) > self.ceiling:
                    raise InputError(
                        found=f"{self.name}, a gzip file that becomes more than {self.ceiling:,} bytes",
                        expected=f"at most {self.ceiling >> 20} MB",
                        remedy="if it is what it should be, allow more megabytes with unpacked=…, or unpack it with "
                        "gunzip first",
                    )
                content.write(part)
        return content.getvalue()

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return len(self.data) if self._is_gzip else self.stored_size

    @property
    def most(self) -> int:
        """Bytes that the content cannot exceed, known without unpacking it."""
        return self.stored_size * (DEFLATE_RATIO if self._is_gzip else 1)

    @cached_property
    def allowance(self) -> Allowance:
        """What its arrays may take in memory together."""
        return Allowance.of(self.path, self.stored_size, self.ceiling)

    @cached_property
    def numbers(self) -> bytes:
        """The text, counted as the array of numbers that it may become: eight bytes for a digit and a blank."""
        self.allowance.take(4 * self.size)
        return self.text

    @cached_property
    def is_text(self) -> bool:
        """Whether the first bytes are text: no control characters but blanks and ends of lines."""
        head = self.head.removeprefix(_BOM)
        return bool(head) and not any(byte < 32 and byte not in b"\t\n\v\f\r" for byte in head)

    @cached_property
    def text(self) -> bytes:
        """The whole content without a mark of its encoding."""
        return self.data.removeprefix(_BOM)

    @cached_property
    def first_lines(self) -> bytes:
        """The first bytes of a text, without what stands before its first line with something in it."""
        return self.head.removeprefix(_BOM).lstrip()

    @property
    def first_line(self) -> bytes:
        """The first line with something in it, without the blanks around it."""
        return self.first_lines.partition(b"\n")[0].strip()

    def once(self, find: Callable[[Self], Found]) -> Found:
        """What this function finds in the file; found once, however many formats ask."""
        if find not in self._found:
            self._found[find] = find(self)
        return self._found[find]

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


def opened(path: Path, *, may_be_empty: bool = False) -> BinaryIO:
    """A regular file, open for reading, that has something in it; any other is an InputError."""
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
        raise InputError(
            found=f"{shown}, {kind}", expected="a file with a model or data", remedy="name a file"
        )
    if size_of(file) == 0 and not may_be_empty:
        file.close()
        raise InputError(
            found=f"{shown}, an empty file",
            expected="a file with a model or data",
            remedy="copy, download or save it again",
        )
    return file
