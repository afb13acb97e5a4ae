"""Results on disk: one JSON file for each finished cell, with a fingerprint of all that its numbers depend on."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from meltpoint.files.atomic import atomic_write, make_folder
from meltpoint.files.npz import read_entries, write_npz
from meltpoint.models.log_f import LogF
from meltpoint.paper.cells import Cell, Method

Record: TypeAlias = dict[str, Any]
"""What is kept of a finished cell: `fingerprint`, `cell`, `model`, `data`, `result`, `seconds`, `versions`, …"""

VERSIONS: dict[Method, int] = {
    "exact": 1,
    "log-f": 1,
    "ais": 1,
    "raise": 1,
    "csl": 1,
    "configurations": 1,
    "samples": 1,
    "annealed": 1,
    "training": 1,
}
"""Versions of the computations: raised when a change of the source changes numbers beyond their errors."""


def fingerprint(cell: Cell, model_digest: str, data_digest: str) -> str:
    """What a cell's numbers depend on, in 64 letters: its settings, the model, the data and the method."""
    settings = {name: value for name, value in asdict(cell).items() if value is not None}
    parts = {"cell": settings, "model": model_digest, "data": data_digest, "method": VERSIONS[cell.method]}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Store:
    """A folder of results."""

    folder: Path

    def path(self, cell: Cell) -> Path:
        """The file of a cell."""
        return self.folder / "cells" / f"{cell.name}.json"

    def read(self, cell: Cell) -> Record | None:
        """The record of a finished cell; None where there is none, or no whole one."""
        try:
            record = json.loads(self.path(cell).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return record if isinstance(record, dict) and "fingerprint" in record else None

    def has(self, cell: Cell, wanted: str) -> bool:
        """Whether a cell is finished, with this fingerprint."""
        record = self.read(cell)
        return record is not None and record["fingerprint"] == wanted

    def knows(self, model: str) -> bool:
        """Whether any cell of a model is finished."""
        return any((self.folder / "cells").glob(f"{model}.*.json"))

    def write(self, cell: Cell, record: Record) -> None:
        """Keep the record of a finished cell."""
        make_folder(self.path(cell).parent)
        with atomic_write(self.path(cell)) as file:
            file.write(json.dumps(record, indent=1, allow_nan=False).encode())

    def read_log_f(self, cell: Cell) -> LogF:
        """The unnormalised probabilities that belong to a finished cell of the method log-f."""
        arrays = read_entries(self._log_f_path(cell), ("values", "stderrs", "bound"))
        return LogF(**{name: array.astype(np.float64) for name, array in arrays.items()})

    def write_log_f(self, cell: Cell, log_f: LogF) -> None:
        """Keep unnormalised probabilities; before the record, whose presence says that they are there."""
        make_folder(self._log_f_path(cell).parent)
        with atomic_write(self._log_f_path(cell)) as file:
            write_npz(file, {"values": log_f.values, "stderrs": log_f.stderrs, "bound": log_f.bound})

    def _log_f_path(self, cell: Cell) -> Path:
        return self.folder / "log-f" / f"{cell.name}.npz"
