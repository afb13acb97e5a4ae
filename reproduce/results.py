"""Results on disk: a sealed JSON file for each finished cell, and run folders of cells under way."""

import errno
import hashlib
import json
import math
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import meltpoint as mp
from reproduce.cells import Cell
from reproduce.models import LoadedModel

Record: TypeAlias = dict[str, Any]
"""What is kept of a finished cell: `fingerprint`, `cell`, `model`, `data`, `result`, `seconds`, `versions`, …"""

METHOD = 1
"""Raised when a change of the source changes numbers beyond their errors: all cells are then computed again."""

_SEAL = "seal"
_NO_FILE = (errno.ENOENT, errno.ELOOP, errno.EINVAL, errno.ENXIO)  # none, a link, a pipe or folder, a socket
_WRONG_PATH = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)
_LARGEST = 1 << 24  # bytes; a cell with 100 examples has 10 kB


def cell_fingerprint(cell: Cell, model_digest: str, data_digest: str) -> str:
    """What a cell's numbers depend on, in 32 letters: its settings, the model, the data and the method."""
    settings = {name: value for name, value in asdict(cell).items() if value is not None}
    return _digest({"cell": settings, "model": model_digest, "data": data_digest, "method": METHOD})


@dataclass(frozen=True)
class Results:
    """A folder of results. Links in it are neither followed nor written through."""

    folder: Path

    def path(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.name}.json"

    def read(self, cell: Cell) -> Record | None:
        """The record of a finished cell; None where there is none, or not as it was written."""
        path = self.path(cell)
        refuse_links(path, self.folder)
        try:
            record = json.loads(_read_regular(path))
            whole = isinstance(record, dict) and record.pop(_SEAL, None) == _digest(record)
        except OSError as problem:  # a disk that fails must not make a table with holes
            if problem.errno not in _NO_FILE:
                raise
            return None
        except (ValueError, RecursionError):  # RecursionError: a thousand brackets
            return None
        return record if whole else None

    def has(self, cell: Cell, loaded: LoadedModel) -> bool:
        """Whether a cell is finished, for exactly this model and data."""
        record = self.read(cell)
        wanted = cell_fingerprint(cell, loaded.model_digest, loaded.data_digest)
        return record is not None and record.get("fingerprint") == wanted

    def has_any(self, model: str) -> bool:
        return any((self.folder / "cells").glob(f"{model}.*.json"))

    def write(self, cell: Cell, record: Record) -> None:
        refuse_links(self.path(cell), self.folder)
        sealed = {**record, _SEAL: _digest(record)}
        write_file(self.path(cell), json.dumps(sealed, indent=1, allow_nan=False))

    def estimate(self, cell: Cell, name: str = "estimate") -> mp.Estimate | None:
        """An estimate in a cell's result, None if the cell is not finished."""
        record = self.read(cell)
        return None if record is None else estimate_from(record["result"][name])

    def run_folder(self, cell: Cell, loaded: LoadedModel) -> Path:
        """The run folder of a cell under way; another model or other data have another one."""
        fingerprint = cell_fingerprint(cell, loaded.model_digest, loaded.data_digest)
        folder = self.folder / "under-way" / f"{cell.name}.{fingerprint[:8]}"
        refuse_links(folder / "any file", self.folder)
        return folder


def estimate_from(kept: dict[str, Any]) -> mp.Estimate:
    """The estimate that `to_dict` made these numbers of."""
    value, error = (math.nan if kept[name] is None else kept[name] for name in ("value", "stderr"))
    return mp.Estimate(value, error, kept["direction"], kept["covers"])


def refuse_links(path: Path, folder: Path) -> None:
    """Refuse a path that leaves a folder by a link in place of one of the folders below it."""
    for parent in path.parents:
        if parent == folder:
            return
        if parent.is_symlink():
            raise mp.InputError(
                found=f"{parent}, a link out of {folder}", expected="a folder", remedy="remove the link"
            )


def write_file(path: Path, content: str | bytes) -> Path:
    """Write a file whole or not at all; a link at `path` is replaced, and its target left alone."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # of a process that was killed
        try:
            with temporary.open("xb") as file:  # x: it follows no link
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as problem:
        kind = mp.InputError if isinstance(problem, _WRONG_PATH) else mp.SystemFailure
        found, expected = f"{problem.strerror or problem} while writing {path}", "a path to write to"
        remedy = "choose another folder, or make room on the disk"
        raise kind(found=found, expected=expected, remedy=remedy) from problem
    return path


def _read_regular(path: Path) -> bytes:
    """The bytes of a regular file: a pipe could block forever, and a link leads elsewhere."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_LARGEST)


def _digest(content: Record) -> str:
    text = json.dumps(content, sort_keys=True).encode()
    return hashlib.blake2b(len(text).to_bytes(8, "little") + text, digest_size=16).hexdigest()
