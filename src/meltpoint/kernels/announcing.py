"""Report that kernels are being compiled: to the progress callback and, after two seconds, to the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from numba.core.event import Event, Listener, install_listener

from meltpoint.errors import Progress

PREPARING = "preparing the kernels (compiled once per machine)"
_SECONDS = 2.0
_log = logging.getLogger("meltpoint")


@contextmanager
def preparing_kernels(progress: Progress) -> Iterator[None]:
    """Around what may compile kernels. Nothing is reported where machine code is only loaded."""
    listener = _CompilerListener(progress)
    try:
        with install_listener("numba:compile", listener):
            yield
    finally:
        listener.timer.cancel()
    if listener.announced:
        progress(PREPARING, 1.0, 1.0)


class _CompilerListener(Listener):
    """Announces the first of the functions that are compiled; the others are its callees, or follow at once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.announced = False
        self.timer = Timer(_SECONDS, _log.info, (PREPARING,))
        self.timer.daemon = True

    def on_start(self, event: Event) -> None:
        """Numba found no machine code of a function, and compiles it."""
        if not self.announced:
            self.announced = True
            self.timer.start()
            self._progress(PREPARING, 0.0, 1.0)

    def on_end(self, event: Event) -> None:
        """Nothing is reported: more functions may follow."""
