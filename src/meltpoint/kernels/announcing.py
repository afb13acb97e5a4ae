"""Report that kernels are being compiled: to the progress callback and, after two seconds, to the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from meltpoint.errors import Progress

PREPARING = "preparing the kernels (compiled once per machine)"
_SECONDS = 2.0
_log = logging.getLogger("meltpoint")


@contextmanager
def preparing_kernels(progress: Progress) -> Iterator[None]:
    """Around the compilation of kernels, or their loading, which is too quick for the log."""
    progress(PREPARING, 0.0, 1.0)
    timer = Timer(_SECONDS, _log.info, (PREPARING,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    progress(PREPARING, 1.0, 1.0)
