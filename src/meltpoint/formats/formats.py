"""Recognise the format of a data file by its content.

Each format has a file of its own beside this one. `arrays.py` calls the readers of arrays, `datasets/read.py` those of
tables and sequences. Models are read by `models.py` (our own format) and `formats/` (all others).
"""

import codecs
import os
from enum import Enum
from pathlib import Path

from meltpoint.errors import InputError
from meltpoint.formats.bounded import open_regular


class Format(Enum):
    """The formats that can be read; the value is their name in messages."""

    NPY = ".npy file"
    NPZ = ".npz file"
    MAT = ".mat file"
    IDX = "MNIST idx file"
    GZIP = "gzip file"
    TEXT = "text table"
    FASTA = "FASTA file"
    PARQUET = "parquet file"


READABLE = "a .npy, .npz, .mat, .csv, FASTA, parquet or MNIST idx file"

IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""The third byte of an idx file, and the numbers it announces."""

_HEAD = 4096
_HDF5 = b"\x89HDF\r\n\x1a\n"
_MAT5 = (b"\x00\x01IM", b"\x01\x00MI")
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_FOREIGN = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ\x00", "an xz file"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)


def detect(path: Path) -> Format:
    """The format of a readable, non-empty file; foreign files are refused by name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "digits.data"
    ...     _ = file.write_text("0,1,1")
    ...     detect(file)
    <Format.TEXT: 'text table'>
    """
    head = first_bytes(path)
    if head.startswith(b"\x93NUMPY"):
        return Format.NPY
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Format.NPZ
    if head.startswith(b"\x1f\x8b"):
        return Format.GZIP
    if is_idx(head):
        return Format.IDX
    if head.startswith(b"PAR1"):
        return Format.PARQUET
    if head.startswith((_HDF5, b"MATLAB 7.3")) or head[512:520] == _HDF5:
        raise InputError(
            found=f"{path}, {'a MATLAB 7.3 (HDF5)' if head.startswith(b'MATLAB') else 'an HDF5'} file",
            expected="data in a .npy, .npz, .csv or .mat file of version 7 or older",
            remedy="save(..., '-v7') in MATLAB, numpy.save from h5py; models in HDF5 are read by mp.load",
        )
    if head[124:128] in _MAT5:
        return Format.MAT
    # A pickle can run any program when it is opened, so it is only ever named.
    if head.startswith(_PICKLES) or path.suffix.lower() in {".pkl", ".pickle"}:
        raise _foreign(
            path, "a Python pickle", "save arrays with numpy.save or numpy.savez: pickles are never opened"
        )
    for signature, description in _FOREIGN:
        if head.startswith(signature):
            raise _foreign(path, description, "convert it, or check the path")
    if is_text(head):
        return Format.FASTA if is_fasta(head) else Format.TEXT
    if path.suffix.lower() == ".mat":
        raise _foreign(
            path, "no .mat file of version 5 to 7", "save it again in MATLAB with save(..., '-v7')"
        )
    raise _foreign(path, "a file of unknown format", "check the path, or save the data with numpy.save")


def is_idx(head: bytes) -> bool:
    """Whether these are the first bytes of an idx file: two zeros, a number type, a number of axes."""
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in IDX_TYPES and head[3] > 0


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file; one that is missing, empty or no regular file is an InputError."""
    shown = os.fspath(path)
    try:
        is_special = path.exists() and not path.is_file()
        head = b"" if is_special else _read_head(path)
    except FileNotFoundError as problem:
        raise InputError(
            found=f"no file {shown!r}", expected="an existing file", remedy="check the path"
        ) from problem
    except (OSError, ValueError) as problem:
        raise InputError(
            found=f"{shown!r}, which cannot be opened ({problem})",
            expected="a readable file",
            remedy="check the path and its permissions",
        ) from problem
    if is_special:
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise InputError(found=f"{shown!r}, {kind}", expected=READABLE, remedy="name a file")
    if not head:
        raise InputError(
            found=f"{shown!r}, an empty file", expected=READABLE, remedy="copy, download or save it again"
        )
    return head


def _read_head(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(_HEAD)


def is_fasta(head: bytes) -> bool:
    """Whether these are the first bytes of a FASTA file: the mark of a sequence's name."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b">")


def is_text(head: bytes) -> bool:
    """Whether these are the first bytes of a text: UTF-8 without control characters."""
    try:
        # Not the final chunk: the head may end inside a character.
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head, final=False)
    except UnicodeDecodeError:
        return False
    return all(character >= " " or character in "\t\r\n\f\v" for character in text)


def _foreign(path: Path, description: str, remedy: str) -> InputError:
    return InputError(found=f"{path}, {description}", expected=READABLE, remedy=remedy)
