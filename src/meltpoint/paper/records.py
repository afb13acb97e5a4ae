"""What is kept of a finished cell besides its numbers."""

from dataclasses import asdict
from typing import Any

from meltpoint.annealing.loop import check_threads
from meltpoint.paper.cells import Cell
from meltpoint.paper.shelf import Shelf
from meltpoint.paper.store import VERSIONS, Record
from meltpoint.paper.subjects import SUBJECTS
from meltpoint.report.compose import versions


def record_of(
    cell: Cell, shelf: Shelf, result: dict[str, Any], seconds: dict[str, float], threads: int | None
) -> Record:
    """The record of a cell: all that is needed to trust and to repeat it."""
    loaded = shelf[cell.model]
    return {
        "fingerprint": shelf.fingerprint(cell),
        "method_version": VERSIONS[cell.method],
        "cell": asdict(cell),
        "model": {"what": repr(loaded.model), "sha256": loaded.model_digest},
        "data": {"name": SUBJECTS[cell.model].data, "sha256": loaded.data_digest},
        "result": result,
        "seconds": seconds,
        "threads": check_threads(threads),
        "versions": versions(),
    }
