"""How this library uses Numba: compiled functions that let other threads run, and LLVM instructions of our own."""

from collections.abc import Callable
from typing import Any

from numba import extending, njit


def compiled(function: Callable[..., Any]) -> Any:  # noqa: ANN401
    """Compile a function when it is first called, without the GIL and without checks for division by zero.

    The machine code is cached beside the source or, where that is read-only, in the user's cache directory. Where
    neither can be written it is compiled anew in every process.
    """
    try:
        return njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:
        return njit(nogil=True, error_model="numpy")(function)


def intrinsic(emitter: Callable[..., Any]) -> Any:  # noqa: ANN401
    """Make a function that emits LLVM instructions callable, without its first parameter, from compiled ones."""
    return extending.intrinsic(emitter)
