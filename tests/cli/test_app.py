import subprocess
import sys
from importlib.metadata import version

import pytest

HEAVY = ("matplotlib", "numba", "numpy", "pooch", "rich", "scipy", "sklearn")
COMMANDS = ("demo", "evaluate", "sample", "train", "paper", "data")

PROGRAM = f"""
import sys
from meltpoint.cli import main
for command in [[], *([name] for name in sys.argv[1:])]:
    sys.argv = ["meltpoint", *command, "--help"]
    try:
        main()
    except SystemExit as end:
        print(*command, end.code, [name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


def test_help_imports_nothing_heavy():
    # What takes the time is imports, and they can be counted, which a busy machine's clock cannot.
    arguments = [sys.executable, "-c", PROGRAM, *COMMANDS]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    usages = [line for line in done.stdout.splitlines() if line.startswith("Usage: meltpoint")]
    assert [usage.split()[2] for usage in usages] == ["[OPTIONS]", *COMMANDS]
    assert done.stderr.splitlines() == ["0 []", *(f"{name} 0 []" for name in COMMANDS)]


def test_help_names_every_command(run):
    text = run("--help").stdout
    assert all(f"  {name} " in text for name in COMMANDS)


def test_version(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"meltpoint {version('meltpoint')}\n")


@pytest.mark.parametrize("arguments", [["evaluat"], ["evaluate"], ["evaluate", "a", "b", "--steps", "many"]])
def test_a_wrong_command_line_is_exit_code_2(run, arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error" in result.stderr
