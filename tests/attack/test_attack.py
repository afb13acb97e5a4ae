"""A short form of `make attack`: the campaigns count what they do, find nothing, and would find something."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def attack(*arguments, before=""):
    program = f"{before}\nimport sys; from attack.__main__ import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.slow
def test_nothing_is_found_in_twenty_seconds():
    ended = attack("kill", "fault", "fuzz", "--seconds", "20")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for count in ("kills", "faults", "files"):
        assert int(re.search(rf"([\d,]+) {count}", ended.stdout)[1].replace(",", "")) > 0


@pytest.mark.slow
def test_hostile_folders_reach_nothing_outside_and_nothing_hangs():
    ended = attack("hostile-folder", "--seconds", "10")
    assert int(re.search(r"([\d,]+) folders", ended.stdout)[1].replace(",", "")) > 0
    assert "outside" not in ended.stdout
    assert "hung" not in ended.stdout
    assert "exit code -" not in ended.stdout


# Writing through links, as it was before.
THROUGH_LINKS = """
import meltpoint.files.atomic as atomic
from contextlib import contextmanager
honest = atomic.atomic_write
def through(path, follow_links=True):
    return honest(path)
import meltpoint.runs.store, meltpoint.runs.chunks
meltpoint.runs.store.atomic_write = meltpoint.runs.chunks.atomic_write = through
"""


@pytest.mark.slow
def test_a_mutant_is_found():
    ended = attack("hostile-folder", "--seconds", "20", "--seed", "22", before=THROUGH_LINKS)
    assert ended.returncode == 1
    assert "a file outside was touched" in ended.stdout
