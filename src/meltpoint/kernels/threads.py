"""How many threads compiled code runs on."""

import os

import numpy as np

from meltpoint.errors import InputError


def check_threads(threads: int | None) -> int:
    """The number of threads: as given, or all cores this process may use."""
    if threads is None:
        usable = getattr(os, "sched_getaffinity", None)
        return len(usable(0)) if usable else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError(
            found=f"threads={threads!r}",
            expected="a whole number from 1 on",
            remedy="leave it out for all cores",
        )
    return int(threads)
