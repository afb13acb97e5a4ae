"""The one error a user's input can cause, the one warning, and the progress callback's type."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[str, float, float], None]
"""Called from the caller's own thread with (what is being done, amount done, total amount)."""


class InputError(ValueError):
    """Input that cannot be used. The message says what was found, what was expected and what to do.

    >>> raise InputError(found="785 columns", expected="784 visible units", remedy="drop the label column")
    Traceback (most recent call last):
    meltpoint.errors.InputError: found 785 columns, expected 784 visible units: drop the label column
    """

    def __init__(self, *, found: str, expected: str, remedy: str) -> None:
        super().__init__(f"found {found}, expected {expected}: {remedy}")
        self.found = found
        self.expected = expected
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors of workers travel as pickles, which know nothing of keywords.
        return partial(InputError, found=self.found, expected=self.expected, remedy=self.remedy), ()


class RunWarning(UserWarning):
    """Something about a run's folder that was put right, or can be: no result depends on it."""
