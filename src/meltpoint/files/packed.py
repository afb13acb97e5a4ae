"""What a gzip file holds, unpacked to no more than a file of its size should hold."""

import gzip
from pathlib import Path

from meltpoint.errors import InputError
from meltpoint.files.bounded import open_regular, reading, size_of
from meltpoint.files.formats import Format

_HEAD = 4096
_SMALL, _EXPANSION = 1 << 24, 100
"""Bytes (16 MB) that any gzip file may become, and how many times its size: zeros and ones as text reach 80."""


def first_unpacked(path: Path) -> bytes:
    """The first bytes of what is in a gzip file."""
    with reading(path, Format.GZIP.value), open_regular(path) as packed, gzip.open(packed, "rb") as file:
        return file.read(_HEAD)


def unpack(path: Path) -> bytes:
    """All that is in a gzip file."""
    with reading(path, Format.GZIP.value), open_regular(path) as packed, gzip.open(packed, "rb") as file:
        limit = max(_SMALL, _EXPANSION * size_of(packed))
        content = file.read(limit)
        if file.read(1):
            raise InputError(
                found=f"{path}, a small gzip file that unpacks to more than {limit:,} bytes",
                expected=f"at most {_EXPANSION} times its own size",
                remedy="if it is what it should be, unpack it with gunzip first",
            )
        return content
