"""Results on disk: a sealed JSON file for each finished cell; log f, and chains of cells under way, as in runs."""

import errno
import json
import math
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias, get_args

from meltpoint.formats.atomic import atomic_write, make_folder
from meltpoint.formats.bounded import open_regular
from meltpoint.kernels.threads import check_threads
from meltpoint.paper.cells import Cell, CellMethod
from meltpoint.paper.models import MODELS, LoadedModel
from meltpoint.results.compose import versions
from meltpoint.runs.fingerprint import fingerprint
from meltpoint.runs.store import RunFolder, Store, check_inside
from meltpoint.statistics.estimate import Estimate

Record: TypeAlias = dict[str, Any]
"""What is kept of a finished cell: `fingerprint`, `cell`, `model`, `data`, `result`, `seconds`, `versions`, …"""

VERSIONS: dict[CellMethod, int] = dict.fromkeys(get_args(CellMethod), 1)
"""Versions of the computations: raised when a change of the source changes numbers beyond their errors."""

_SEAL = "seal"
_NO_FILE = (errno.ENOENT, errno.ELOOP, errno.EINVAL, errno.ENXIO)  # none, a link, a pipe or folder, a socket
_LARGEST = 1 << 24  # bytes; a cell with 100 examples has 10 kB


def cell_fingerprint(cell: Cell, model_digest: str, data_digest: str) -> str:
    """What a cell's numbers depend on, in 32 letters: its settings, the model, the data and the method."""
    settings = {name: value for name, value in asdict(cell).items() if value is not None}
    parts = {"cell": settings, "model": model_digest, "data": data_digest, "method": VERSIONS[cell.method]}
    return fingerprint({}, json.dumps(parts, sort_keys=True))


def record_of(
    cell: Cell, loaded: LoadedModel, result: dict[str, Any], seconds: dict[str, float], threads: int | None
) -> Record:
    """The record of a cell: all that is needed to trust and to repeat it."""
    return {
        "fingerprint": cell_fingerprint(cell, loaded.model_digest, loaded.data_digest),
        "method_version": VERSIONS[cell.method],
        "cell": asdict(cell),
        "model": {"what": repr(loaded.model), "sha256": loaded.model_digest},
        "data": {"name": MODELS[cell.model].data, "sha256": loaded.data_digest},
        "result": result,
        "seconds": seconds,
        "threads": check_threads(threads),
        "versions": versions(),
    }


@dataclass(frozen=True)
class Results:
    """A folder of results. As in a run's folder, links in it are neither followed nor written through."""

    folder: Path

    def path(self, cell: Cell) -> Path:
        """The file of a cell."""
        return self.folder / "cells" / f"{cell.name}.json"

    def read(self, cell: Cell) -> Record | None:
        """The record of a finished cell; None where there is none, or not as it was written."""
        path = self.path(cell)
        check_inside(path, self.folder)
        try:
            with open_regular(path, follow_links=False) as file:
                record = json.loads(file.read(_LARGEST))
            whole = isinstance(record, dict) and record.pop(_SEAL, None) == _seal_of(record)
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
        """Whether any cell of a model is finished."""
        return any((self.folder / "cells").glob(f"{model}.*.json"))

    def write(self, cell: Cell, record: Record) -> None:
        """Keep the record of a finished cell."""
        check_inside(self.path(cell), self.folder)
        sealed = {**record, _SEAL: _seal_of(record)}
        write_text(self.path(cell), json.dumps(sealed, indent=1, allow_nan=False))

    def estimate(self, cell: Cell, name: str = "estimate") -> Estimate | None:
        """An estimate in a cell's result, None if the cell is not finished."""
        record = self.read(cell)
        return None if record is None else estimate_from(record["result"][name])

    def log_f_store(self, cell: Cell, loaded: LoadedModel) -> Store:
        """Where the unnormalised probabilities of a cell of the method log-f are kept: arrays, unlike all else."""
        return self._store(self.folder / "log-f" / cell.name, cell, loaded)

    def chunk_store(self, cell: Cell, loaded: LoadedModel) -> Store:
        """Where the finished chains of a cell are kept until all of them are."""
        return self._store(self._chunks(cell), cell, loaded)

    def discard_chunks(self, cell: Cell) -> None:
        """Remove the chunks of a finished cell; what cannot be removed does no harm."""
        folder = self._chunks(cell)
        check_inside(folder, self.folder)
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # other cells are under way
            folder.parent.rmdir()

    def _chunks(self, cell: Cell) -> Path:
        return self.folder / "under-way" / cell.name

    def _store(self, folder: Path, cell: Cell, loaded: LoadedModel) -> Store:
        check_inside(folder / "any chunk", self.folder)
        return RunFolder(folder, cell_fingerprint(cell, loaded.model_digest, loaded.data_digest))


def estimate_from(kept: dict[str, Any]) -> Estimate:
    """The estimate that `to_dict` made these numbers of."""
    value, error = (math.nan if kept[name] is None else kept[name] for name in ("value", "stderr"))
    return Estimate(value, error, kept["direction"], kept["covers"])


def write_text(path: Path, text: str) -> Path:
    """Write a text whole or not at all; a link at `path` is replaced."""
    make_folder(path.parent)
    with atomic_write(path, follow_links=False) as file:
        file.write(text.encode())
    return path


def _seal_of(record: Record) -> str:
    return fingerprint({}, json.dumps(record, sort_keys=True))
