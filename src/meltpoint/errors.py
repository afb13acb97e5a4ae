"""The two errors of this library, its warnings, the progress callback's type, and text made safe to print."""

import traceback
from collections.abc import Callable
from functools import partial
from numbers import Number
from pathlib import Path
from typing import Any, Self, TypeAlias

Progress: TypeAlias = Callable[[str, float, float], object]
"""Called from the caller's own thread with (what is being done, amount done, total amount)."""

_PACKAGE = str(Path(__file__).parent)
_MESSAGE_LENGTH = 500
_SHORTEST = 80
_SHOWN = 40


def printable(text: str, *, keep: str = "") -> str:
    r"""Text that is safe to print: control characters, and others that a terminal interprets, become escapes.

    The characters in `keep` are left alone. Everything that comes from files passes through here on its way to an
    error or to the terminal.

    >>> print(printable("weights\x1b[2J"))
    weights\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in keep else ascii(character)[1:-1]
        for character in text
    )


def shortened(text: str, length: int) -> str:
    """Text of at most `length` characters, with its middle left out where it is longer.

    >>> shortened("weights_1, weights_2, weights_3", 20)
    'weights_1 … eights_3'
    """
    if len(text) <= length:
        return text
    tail = (length - 3) // 2
    return f"{text[: length - 3 - tail]} … {text[len(text) - tail :]}"


def described(value: object) -> str:
    """What an object is, in a few words: nothing that it holds is turned into text.

    >>> described("weights"), described([[1] * 9] * 9)
    ("'weights'", 'a list')
    """
    if isinstance(value, str | bytes):
        return repr(value[:_SHOWN])
    if value is None or (
        isinstance(value, Number) and not (isinstance(value, int) and abs(value) >= 1 << 64)
    ):
        return repr(value)
    return f"a {type(value).__name__}"


class _ExplainedError(Exception):
    """An error that says what was found, what was expected and what to do, in at most 500 characters."""

    def __init__(self, *, found: str, expected: str, remedy: str) -> None:
        parts = [shortened(printable(text), _MESSAGE_LENGTH) for text in (found, expected, remedy)]
        self.found, self.expected, self.remedy = parts
        room = _MESSAGE_LENGTH - len("found , expected : ")
        # What is too long comes from a file or a path; our own words are short.
        for k in sorted(range(3), key=lambda k: -len(parts[k])):
            others = sum(map(len, parts)) - len(parts[k])
            parts[k] = shortened(parts[k], max(_SHORTEST, room - others))
        super().__init__("found {}, expected {}: {}".format(*parts))

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors of workers travel as pickles, which know nothing of keywords.
        return partial(type(self), found=self.found, expected=self.expected, remedy=self.remedy), ()

    def _render_traceback_(self, *_: object) -> list[str]:
        """What a notebook shows: the caller's own line and the sentence, without the frames of this package."""
        frames = traceback.extract_tb(self.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
        where = [f"----> {own[-1].lineno} {own[-1].line}"] if own and own[-1].line else []
        return [*where, f"{type(self).__name__}: {self}"]

    def with_found(self, found: str) -> Self:
        """The same error with other words for what was found."""
        return type(self)(found=found, expected=self.expected, remedy=self.remedy)


class InputError(_ExplainedError, ValueError):
    """Input that cannot be used. The message says what was found, what was expected and what to do.

    >>> raise InputError(found="785 columns", expected="784 visible units", remedy="drop the label column")
    Traceback (most recent call last):
    meltpoint.errors.InputError: found 785 columns, expected 784 visible units: drop the label column
    """


class SystemFailure(_ExplainedError, RuntimeError):  # noqa: N818  the name says that it is not the caller's error
    """A failure that is not caused by the input: a full disk, dead workers, a broken installation.

    >>> raise SystemFailure(found="no space left", expected="a disk with room", remedy="free some space")
    Traceback (most recent call last):
    meltpoint.errors.SystemFailure: found no space left, expected a disk with room: free some space
    """


class RunWarning(UserWarning):
    """A problem with a run's folder that was or can be corrected: no result depends on it."""


class DataWarning(UserWarning):
    """Something in a data file that was left out because it is no example: an index, labels, unknown letters."""
