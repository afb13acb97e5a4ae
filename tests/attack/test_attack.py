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


def count(ended, what):
    return int(re.search(rf"([\d,]+) {what}", ended.stdout)[1].replace(",", ""))


@pytest.mark.slow
def test_nothing_is_found_in_a_few_seconds():
    ended = attack("kill", "fault", "fuzz", "hostile-folder", "hostile-checkpoint", "--seconds", "6")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for what in ("runs", "faults", "files", "folders", "checkpoints"):
        assert count(ended, what) > 0


# Writing through links, as it was before.
THROUGH_LINKS = """
import attack  # which limits the threads of BLAS before NumPy starts them
import meltpoint.formats.atomic as atomic
from contextlib import contextmanager
honest = atomic.atomic_write
def through(path, follow_links=True):
    return honest(path)
import meltpoint.runs.store, meltpoint.runs.files
meltpoint.runs.store.atomic_write = meltpoint.runs.files.atomic_write = through
import attack.folders
attack.folders._KINDS = ("link",)
attack.folders._TARGETS = attack.folders._TARGETS[:1]
"""


@pytest.mark.slow
def test_a_mutant_is_found():
    ended = attack("hostile-folder", "--seconds", "60", "--seed", "1", "--stop", before=THROUGH_LINKS)
    assert ended.returncode == 1
    assert "a file outside was touched" in ended.stdout


# A reader that lets an error of its parser through, as some did.
RAW_ERRORS = """
import attack.files as files
def read(path):
    if path.stat().st_size % 7 == 0:
        raise KeyError("raw")
files.READERS = (read,)
"""


@pytest.mark.slow
def test_an_error_that_is_no_sentence_is_found():
    ended = attack("fuzz", "--seconds", "60", "--stop", before=RAW_ERRORS)
    assert ended.returncode == 1
    assert "KeyError" in ended.stdout
