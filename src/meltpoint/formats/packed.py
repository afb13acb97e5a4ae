"""What a gzip file or a tar archive holds, unpacked to no more than a file of its size should hold."""

import gzip
import io
import tarfile
from pathlib import Path

from meltpoint.errors import InputError
from meltpoint.formats.bounded import open_regular, reading, size_of
from meltpoint.formats.formats import Format, first_bytes

_HEAD = 4096
_SMALL, _EXPANSION = 1 << 24, 100
"""Bytes (16 MB) that any gzip file may become, and how many times its size: zeros and ones as text reach 80."""

_MOST_MEMBERS = 1000


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


def is_tar(head: bytes) -> bool:
    """Whether these are the first bytes of a tar archive."""
    return head[257:262] == b"ustar"


def tar_members(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """The files of an archive."""
    members: list[tarfile.TarInfo] = []
    for member in archive:
        if member.isreg() and not member.issparse():
            members.append(member)
        if len(members) > _MOST_MEMBERS:
            raise ValueError(f"more than {_MOST_MEMBERS} files")
    return members


def members_named(members: list[tarfile.TarInfo], name: str) -> list[tarfile.TarInfo]:
    """The files of this name in an archive; without folders it is enough where there is one such file."""
    whole = [member for member in members if member.name == name]
    return whole or [member for member in members if member.name.rpartition("/")[2] == name]


def read_tar(path: Path) -> bytes | None:
    """A tar archive, with gzip undone; None if the file is none."""
    head = first_bytes(path)
    if head.startswith(b"\x1f\x8b"):
        return unpack(path) if is_tar(first_unpacked(path)) else None
    if not is_tar(head):
        return None
    with open_regular(path) as file:
        return file.read()


def tar_content(path: Path, archive: bytes, name: str | None) -> bytes:
    """What is in the file of this name in a tar archive."""
    with reading(path, "tar archive"), tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as opened:
        members = tar_members(opened)
        chosen = members if name is None else members_named(members, name)
        if len(chosen) != 1:
            names = [member.name.rpartition("/")[2] for member in (chosen or members)]
            raise InputError(
                found=f"{path}, a tar archive {f'with no one file {name!r}' if name else 'of several files'}: "
                + (", ".join(names) or "none"),
                expected="the name of the one with the examples behind a colon",
                remedy=f"write {path}:NAME",
            )
        extracted = opened.extractfile(chosen[0])
        # A header may promise more than the archive has.
        return extracted.read(min(chosen[0].size, len(archive))) if extracted else b""
