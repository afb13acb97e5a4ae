"""Numba's `intrinsic`, typed as what it makes: a function to be called without its first parameter."""

from collections.abc import Callable
from typing import Any

from numba import extending


def intrinsic(emitter: Callable[..., Any]) -> Any:  # noqa: ANN401
    """Turn a function that emits LLVM instructions into one that compiled functions can call."""
    return extending.intrinsic(emitter)
