"""Run float32 code in float64, so that its formulas can be checked to the last digit."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np


@contextmanager
def in_double() -> Iterator[None]:
    """While this is open, `np.float32` is float64. Compiled code is not touched."""
    with mock.patch.object(np, "float32", np.float64):
        yield
