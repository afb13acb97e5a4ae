"""Checks of the estimators' own arguments."""

import numpy as np

from meltpoint.errors import InputError


def check_count(value: int, name: str, remedy: str) -> int:
    """A whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(found=f"{name}={value!r}", expected="a whole number from 1 on", remedy=remedy)
    return int(value)
