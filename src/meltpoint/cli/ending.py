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

NOT_TO_BE_TRUSTED = 1
WRONG_INPUT = 2
FAILURE = 3
INTERRUPTED = 130


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
def report_errors(after_interruption: str = "") -> Iterator[None]:
    """Turn expected errors into one sentence and an exit code; any other is a bug of meltpoint and keeps its traceback.

    SIGTERM, which schedulers send when a job's time is over, counts as Ctrl-C: what is finished is not lost.
    """
    try:
        with orderly_signals(), _warnings_as_sentences():
            yield
    except InputError as problem:
        raise _ended(str(problem), WRONG_INPUT) from None
    except SystemFailure as problem:
        raise _ended(str(problem), FAILURE) from None
    except MemoryError:
        text = "found too little memory, expected enough for the model and its chains: use smaller numbers"
        raise _ended(text, FAILURE) from None
    except ImportError as problem:
        text = (
            f"found a broken installation ({problem}), expected a complete one: pip install --force-reinstall"
        )
        raise _ended(f"{text} meltpoint", FAILURE) from None
    except OSError as problem:
        text = f"found a failure of the system ({problem}), expected none: try again, or use another disk"
        raise _ended(text, FAILURE) from None
    except KeyboardInterrupt as stop:
        echo_err(f"meltpoint: interrupted: {str(stop) or 'nothing was finished by then'}")
        if after_interruption:
            echo_err(after_interruption)
        raise typer.Exit(INTERRUPTED) from None


def _ended(text: str, code: int) -> typer.Exit:
    echo_err(f"meltpoint: {text}")
    return typer.Exit(code)


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
