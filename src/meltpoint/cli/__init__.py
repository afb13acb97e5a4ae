"""The command `meltpoint`: one thin file per command, and the only place that prints."""

import sys


def main() -> None:
    """Run the command. Whatever ends it early gives one sentence and an exit code, also during imports."""
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
    sys.exit(code)
