"""Unnormalised probabilities of the test sets: the same for all cells of a model, so computed once and kept."""

from dataclasses import dataclass, field

import numpy as np

from meltpoint.errors import Progress
from meltpoint.models.log_f import LogF
from meltpoint.models.rbm import RBM
from meltpoint.paper.cells import Cell
from meltpoint.paper.compute import describe_log_f
from meltpoint.paper.records import record_of
from meltpoint.paper.shelf import Shelf
from meltpoint.paper.store import Store
from meltpoint.report.duration import Clock

_ROWS = 4096


@dataclass(frozen=True)
class LogFs:
    """Exact ones are kept in memory; the estimated ones of deep models, which take minutes, on disk too."""

    shelf: Shelf
    store: Store
    _known: dict[Cell, LogF] = field(default_factory=dict)

    def of(self, cell: Cell, progress: Progress | None = None) -> LogF:
        """Those of a cell's test examples."""
        key = Cell(cell.model, "log-f", seed=cell.seed, test_examples=cell.test_examples)
        if key not in self._known:
            exact = isinstance(self.shelf[key.model].model, RBM)
            self._known[key] = self._exact(key) if exact else self._estimated(key, progress)
        return self._known[key]

    def _exact(self, key: Cell) -> LogF:
        loaded = self.shelf[key.model]
        assert isinstance(loaded.model, RBM)
        test = loaded.test(key)
        parts = [loaded.model.log_f(test[low : low + _ROWS]) for low in range(0, len(test), _ROWS)]
        values = np.concatenate(parts)
        return LogF(values, np.zeros(len(test)), values)

    def _estimated(self, key: Cell, progress: Progress | None) -> LogF:
        loaded = self.shelf[key.model]
        assert not isinstance(loaded.model, RBM)
        if self.store.has(key, self.shelf.fingerprint(key)):
            return self.store.read_log_f(key)
        clock = Clock()
        log_f = loaded.model.log_f_estimate(loaded.test(key), seed=key.seed, progress=progress)
        clock.lap("log f")
        self.store.write_log_f(key, log_f)
        self.store.write(key, record_of(key, self.shelf, describe_log_f(log_f), clock.seconds(), None))
        return log_f
