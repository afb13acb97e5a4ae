"""Numbers in text, many at once and without an object for each."""

import warnings

import numpy as np

from meltpoint.layers.unit import Floats


def numbers(text: bytes) -> Floats:
    """All numbers (number,) of a text of blanks and numbers; anything else is a ValueError.

    >>> numbers(b"1 2.5e-3 -7").tolist()
    [1.0, 0.0025, -7.0]
    """
    if not text.strip():
        return np.empty(0)
    with warnings.catch_warnings():
        # Before NumPy 2.3 it stops at what is no number, and only warns.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text.decode("ascii"), sep=" ")  # pyright: ignore
        except (DeprecationWarning, ValueError):
            raise ValueError(f"{_first_wrong(text)!r} in place of a number") from None


def rows(text: bytes, columns: int) -> Floats:
    """Numbers (row, column) of a text whose every line has this many."""
    found = numbers(text)
    if found.size % columns:
        raise ValueError(f"{found.size} numbers, no multiple of {columns}")
    return found.reshape(-1, columns)


def _first_wrong(text: bytes) -> str:
    # Piece by piece: a list of all tokens would take many times the memory of the text.
    for begin in range(0, len(text), 1 << 16):
        for token in text[begin : begin + (1 << 16)].split():
            try:
                float(token)
            except ValueError:
                return token[:40].decode("latin-1")
    return "something"
