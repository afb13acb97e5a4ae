"""Compile the kernels of a run in two processes at once: Numba's compiler holds a lock, so that threads would not help.

A second process compiles into the cache on disk, and this one loads what it finds there. Whatever goes wrong with the
second process, this one compiles what is missing itself.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import typeof

from meltpoint.kernels.compiling import is_cached, is_compiled

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    f"from {__name__} import compile_what_is_asked; compile_what_is_asked()"
)
_LONGEST_WAIT = 60.0  # seconds for the other process after this one is done
_POLL_SECONDS = 0.02


class KernelCall(NamedTuple):
    """A compiled function of a module, and arguments of the types it will be called with."""

    kernel: Any
    arguments: tuple[Any, ...]

    @property
    def signature(self) -> tuple[Any, ...]:
        """Numba's types of the arguments."""
        return tuple(typeof(argument) for argument in self.arguments)

    @property
    def is_loaded(self) -> bool:
        """Whether this process has its machine code."""
        return self.signature in self.kernel.overloads

    @property
    def is_ready(self) -> bool:
        """Whether nothing is left to compile."""
        return is_compiled(self.kernel, self.signature)

    def compile(self) -> None:
        """Compile the kernel for these types, or load it from the cache."""
        self.kernel.compile(self.signature)


def compile_calls(calls: Sequence[KernelCall], processes: int = 1) -> None:
    """Compile kernels, or load them from the cache; with two processes or more, in two at once.

    The second process takes all but the first, in order. This one takes the first and then, from the end, what is not
    there yet. Name those that take longest first.
    """
    calls = [call for call in calls if not call.is_loaded]
    missing = [call for call in calls if not call.is_ready]
    if processes > 1 and len(missing) > 1 and all(is_cached(call.kernel) for call in missing):
        _compile_in_two(missing[0], missing[1:])
    for call in calls:
        call.compile()


def _compile_in_two(first: KernelCall, others: Sequence[KernelCall]) -> None:
    other = _start(others)
    if other is None:
        return
    try:
        first.compile()
        for call in reversed(others[1:]):
            if not call.is_ready:
                call.compile()
        end = time.monotonic() + _LONGEST_WAIT
        while other.poll() is None and time.monotonic() < end and not all(call.is_ready for call in others):
            time.sleep(_POLL_SECONDS)
    finally:
        other.kill()
        other.wait()
        assert other.stdin is not None
        with contextlib.suppress(OSError):  # it had not read everything
            other.stdin.close()


def _start(calls: Sequence[KernelCall]) -> "subprocess.Popen[bytes] | None":
    """A process that compiles the calls; None where there can be none.

    An interpreter that is embedded in another program names that program, which must not be started.
    """
    if not Path(sys.executable or "").stem.lower().startswith("python") or getattr(sys, "frozen", False):
        return None
    try:
        asked = json.dumps([_described_call(call) for call in calls])
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, TypeError, ValueError):  # not allowed to, or arguments that cannot be described
        return None
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it has ended already
        process.stdin.write(f"{asked}\n".encode())
        process.stdin.flush()  # and stays open: the process ends when this one does
    return process


def compile_what_is_asked() -> None:
    """What the second process does: compile the calls that standard input describes, and end."""
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_first_process, daemon=True).start()
    for described in asked:
        call = _call(described)
        if not call.is_ready:
            call.compile()
    os._exit(0)  # not waiting for the thread, which reads


def _end_with_the_first_process() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _described_call(call: KernelCall) -> dict[str, Any]:
    function = call.kernel.py_func
    return {
        "module": function.__module__,
        "name": function.__name__,
        "arguments": [_described(each) for each in call.arguments],
    }


def _call(described: dict[str, Any]) -> KernelCall:
    kernel = getattr(import_module(described["module"]), described["name"])
    return KernelCall(kernel, tuple(_value(each) for each in described["arguments"]))


def _described(value: Any) -> Any:
    """The type of an argument, as JSON: numbers are 0, None is null, and arrays and named tuples are dictionaries."""
    if isinstance(value, np.ndarray) and value.flags.c_contiguous and value.flags.aligned:
        return {"dtype": value.dtype.str, "axes": value.ndim, "writeable": value.flags.writeable}
    if isinstance(value, tuple):
        kind = type(value)
        return {
            "module": kind.__module__,
            "name": kind.__name__,
            "fields": [_described(each) for each in value],
        }
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, int):
        return 0
    if isinstance(value, float):
        return 0.0
    raise TypeError(type(value))


def _value(described: Any) -> Any:
    """A value of a described type."""
    if not isinstance(described, dict):
        return described
    if "dtype" in described:
        array = np.zeros((0,) * described["axes"], described["dtype"])
        array.flags.writeable = described["writeable"]
        return array
    kind = getattr(import_module(described["module"]), described["name"])
    return kind(*(_value(each) for each in described["fields"]))
