"""Compute the cells that are missing, one after the other, and keep each as soon as it is finished."""

from collections.abc import Callable, Iterable, Sequence

from meltpoint.errors import Progress
from meltpoint.models.dbm import DBM
from meltpoint.paper.cells import Cell
from meltpoint.paper.compute import compute
from meltpoint.paper.log_f import LogFs
from meltpoint.paper.records import record_of
from meltpoint.paper.shelf import Loaded, Shelf
from meltpoint.paper.store import Record, Store

# Seconds for one step of one chain and one pair of units, on two cores; only their ratios matter.
_AIS, _RAISE, _HEAT, _LOG_F, _CSL = 1.7e-11, 2.9e-11, 1.7e-11, 4e-11, 4e-11
_CONFIGURATIONS = 1.5e-8
_LOG_F_SAMPLES = 500
_AT_LEAST = 0.5

_TASKS = (
    "AIS",
    "RAISE",
    "CSL",
    "unnormalised probabilities",
    "enumeration",
    "configurations",
    "sampling",
)
"""What the estimators call the work they do; what else they say is passed on."""


def missing(groups: Iterable[Sequence[Cell]], shelf: Shelf, store: Store) -> list[Cell]:
    """The cells that are not there yet, each once: group after group, in each the cheapest first."""

    def order(cell: Cell) -> tuple[bool, float]:
        return cell.method != "log-f", work(cell, shelf[cell.model])

    found: dict[Cell, None] = {}
    for group in groups:
        absent = [cell for cell in dict.fromkeys(group) if not store.has(cell, shelf.fingerprint(cell))]
        found |= dict.fromkeys(sorted(absent, key=order))
    return list(found)


def work(cell: Cell, loaded: Loaded) -> float:
    """About how many seconds a cell takes on two cores."""
    if cell.method == "log-f":
        return _AT_LEAST + len(loaded.test(cell)) * _LOG_F_SAMPLES * loaded.work * _LOG_F
    if cell.method == "configurations":
        return _AT_LEAST + 2.0 ** loaded.model.layer_sizes[-1] * loaded.model.n_visible * _CONFIGURATIONS
    if cell.method == "csl":
        return _AT_LEAST + (cell.steps or 0) * (cell.chains or 0) * loaded.work * _CSL
    if cell.method not in ("ais", "raise"):
        return _AT_LEAST
    pair_steps = (cell.steps or 0) * (cell.chains or 0) * (cell.examples or 1) * loaded.work
    if cell.method == "ais":
        return _AT_LEAST + pair_steps * _AIS
    return _AT_LEAST + pair_steps * (_RAISE + (_HEAT if isinstance(loaded.model, DBM) else 0.0))


def run(
    cells: Sequence[Cell],
    shelf: Shelf,
    store: Store,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    finished: Callable[[Cell, Record], None] | None = None,
) -> None:
    """Compute cells and keep them; `progress` is told of the whole, `finished` of each."""
    costs = [work(cell, shelf[cell.model]) for cell in cells]
    log_fs = LogFs(shelf, store)
    for k, cell in enumerate(cells):
        # Another process may have been at work on the same folder.
        if store.has(cell, shelf.fingerprint(cell)):
            continue
        part = progress and _part(progress, sum(costs[:k]), costs[k], sum(costs))
        log_f = log_fs.of(cell, part)
        if cell.method != "log-f":  # which is kept by now
            result, seconds = compute(cell, shelf[cell.model], log_f, threads, part)
            store.write(cell, record_of(cell, shelf, result, seconds, threads))
        record = store.read(cell)
        if finished and record:
            finished(cell, record)


def _part(progress: Progress, before: float, cost: float, whole: float) -> Progress:
    """Progress of one cell as progress of all of them, in expected seconds."""

    def pass_on(task: str, done: float, total: float) -> None:
        if task in _TASKS:
            progress("all cells", before + cost * done / total, whole)
        else:
            progress(task, done, total)

    return pass_on
