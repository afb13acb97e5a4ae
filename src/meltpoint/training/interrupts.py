"""Ctrl-C that waits for the end of a step, so that nothing is left half done."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def postponed_interrupts() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed since; pressing it twice interrupts at once.

    Python delivers signals to the main thread alone: in any other thread the answer is always no.
    """
    pressed = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)
