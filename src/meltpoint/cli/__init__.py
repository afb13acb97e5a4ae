"""The command `meltpoint`: one thin file per command, and the only place that prints."""

import os
import sys


def main() -> None:
    """Run the command. Whatever ends it early gives one sentence and an exit code, also during imports."""
    _replace_closed()
    from meltpoint.cli.signals import orderly_signals, plain_signals

    with orderly_signals():
        try:
            from meltpoint.cli.ending import run

            code = run()
        except KeyboardInterrupt:
            print("meltpoint: interrupted: nothing was finished by then", file=sys.stderr)  # noqa: T201
            code = 130
        except ImportError as problem:
            text = f"found a broken installation ({problem}), expected a complete one"
            print(f"meltpoint: {text}: pip install --force-reinstall meltpoint", file=sys.stderr)  # noqa: T201
            code = 3
        plain_signals()
    # With `python -m`, a KeyboardInterrupt that left an exec() would end the process by SIGINT whatever the code, even
    # if it was handled (CPython's unhandled_keyboard_interrupt): the next exec() forgets it.
    exec("")
    sys.exit(code)


def _replace_closed() -> None:
    """Open what the shell has closed (`>&-`): a run's file would get its number, and be written into.

    Messages go nowhere; writing results fails, as to a full disk.
    """
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), "r" if name == "stdin" else "w"))
