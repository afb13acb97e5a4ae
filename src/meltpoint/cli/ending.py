"""How the command ends: exit codes, error messages, interruptions.

0   done
1   done, but the result cannot be trusted: the verdict says why, the model seems misread, or Ctrl-C made the report
    partial
2   wrong input
3   any other failure: a full disk, dead workers, an output that cannot be written, a broken
    installation
130 Ctrl-C or SIGTERM before there was a report
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from meltpoint.cli.screen import echo_err
from meltpoint.cli.signals import orderly_signals
from meltpoint.errors import DataWarning, InputError, RunWarning, SystemFailure

NOT_TO_BE_TRUSTED, WRONG_INPUT, FAILURE, INTERRUPTED = 1, 2, 3, 130
NOTHING_FINISHED = "nothing was finished by then"


def run() -> int:
    """Run the command that was typed, and give its exit code."""
    from meltpoint.cli.app import app

    try:
        with report_errors():
            app(prog_name="meltpoint")
        code = 0
    except typer.Exit as end:
        code = end.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except Exception as problem:
        sys.excepthook(type(problem), problem, problem.__traceback__)
        echo_err("meltpoint: this is an error in meltpoint itself: please report the lines above")
        code = FAILURE
    return _flushed(code)


@contextmanager
def report_errors() -> Iterator[None]:
    """Turn expected errors into one sentence and an exit code; any other is a bug of meltpoint and keeps its traceback.

    SIGTERM, which schedulers send when a job's time is over, counts as Ctrl-C: what is finished is not lost.
    """
    try:
        with orderly_signals(), _warnings_as_sentences():
            yield
    except (InputError, SystemFailure, MemoryError, ImportError, OSError, KeyboardInterrupt) as problem:
        text, code = _ending(problem)
        echo_err(f"meltpoint: {text}")
        raise typer.Exit(code) from None


def _ending(problem: BaseException) -> tuple[str, int]:
    match problem:
        case InputError():
            return str(problem), WRONG_INPUT
        case SystemFailure():
            return str(problem), FAILURE
        case MemoryError():
            text = (
                "found too little memory, expected enough for the model and its chains: use smaller numbers"
            )
        case ImportError():
            text = f"found a broken installation ({problem}), expected a complete one: "
            text += "pip install --force-reinstall meltpoint"
        case KeyboardInterrupt():
            return f"interrupted: {str(problem) or NOTHING_FINISHED}", INTERRUPTED
        case _:
            text = f"found a failure of the system ({problem}), expected none: try again, or use another disk"
    return text, FAILURE


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    with warnings.catch_warnings():
        for kind in (RunWarning, DataWarning):
            warnings.simplefilter("always", kind)
        warnings.showwarning = lambda message, *_, **__: echo_err(f"meltpoint: {message}")
        yield


def _flushed(code: int) -> int:
    """The exit code once all output is written; without this Python would print a traceback and change the code."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        return code or FAILURE
    return code
