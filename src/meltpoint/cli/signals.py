"""Signals: SIGTERM is handled like Ctrl-C, and a KeyboardInterrupt that was swallowed is raised again.

This is set up before anything that takes time is imported, so this file imports almost nothing.

Where the library stops at a KeyboardInterrupt: `runs/scheduler.py` (chunks), `runs/workers.py` (worker processes),
`training/loop.py` (between two updates). `cli/ending.py` has the exit codes.
"""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_AGAIN_SECONDS = 0.05


@contextmanager
def orderly_signals() -> Iterator[None]:
    """Within this, SIGTERM does what Ctrl-C does, and a KeyboardInterrupt that was swallowed is raised again.

    Python swallows an exception that is raised in a callback from C (as in a compiler) or in a finaliser. If SIGINT was
    ignored when the command was started, as in the background of a shell, it stays ignored; SIGTERM is always handled.
    """
    # Python allows only the main thread to set signal handlers.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler, hook = signal.signal(signal.SIGTERM, _like_interrupt), sys.unraisablehook

    def again_or_hook(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            hook(lost)
            return
        # Not at once: we are still inside the call that swallows.
        timer = threading.Timer(_AGAIN_SECONDS, _thread.interrupt_main, (signal.SIGTERM,))
        timer.daemon = True
        with suppress(RuntimeError):  # too late: the process is ending
            timer.start()

    sys.unraisablehook = again_or_hook
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, handler)


def interrupts_are_ignored() -> bool:
    """Whether this process ignores Ctrl-C."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def plain_signals() -> None:
    """From here on a signal ends the process at once: all output is written."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _like_interrupt(_number: int, frame: FrameType | None) -> None:
    on_interrupt = signal.getsignal(
        signal.SIGINT
    )  # training has one of its own, which waits for the end of a step
    if not callable(on_interrupt):
        raise KeyboardInterrupt
    on_interrupt(signal.SIGINT, frame)
