"""`python -m reproduce`: the options and exit codes of `meltpoint paper`, which shows progress in a bar."""

import signal
import sys
from argparse import ArgumentParser
from inspect import signature
from pathlib import Path

import meltpoint as mp
from reproduce.command import run

parser = ArgumentParser(
    "python -m reproduce", description="Options: docs/paper.md, or meltpoint paper --help."
)
parser.add_argument("what", metavar="table1 | table2 | figure | all | page")
parser.add_argument("name", metavar="NAME", nargs="?", help="of a figure")
for option in ("profile", "models", "parameters", "out", "docs", "only"):
    default = signature(run).parameters[option].default
    path = option not in ("profile", "only")
    parser.add_argument(f"--{option}", type=Path if path else str, default=default)
for option in ("steps", "threads"):
    parser.add_argument(f"--{option}", type=int)
parser.add_argument("--dry-run", action="store_true", help="list the cells that are missing")

signal.signal(signal.SIGTERM, signal.default_int_handler)  # the end of a job's time loses nothing
try:
    run(**vars(parser.parse_args()))
except (mp.InputError, mp.SystemFailure) as problem:
    print(f"reproduce: {problem}", file=sys.stderr)
    sys.exit(2 if isinstance(problem, mp.InputError) else 3)
except KeyboardInterrupt as stop:
    print(f"reproduce: interrupted: {stop}", file=sys.stderr)
    sys.exit(130)
