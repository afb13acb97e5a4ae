"""Local worker processes: none outlives its main process."""

import signal
import subprocess
import sys

import pytest

from meltpoint.errors import InputError
from meltpoint.runs.workers import processes


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_a_number_of_workers(n):
    with pytest.raises(InputError, match="found workers="), processes(n):
        pass


ORPHANS = """
import os, signal
from meltpoint.runs.workers import processes
if __name__ == "__main__":
    with processes(1) as executor:
        executor.submit(os.getpid).result()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_main_process(tmp_path):
    (tmp_path / "orphans.py").write_text(ORPHANS)
    # A worker holds the other end of the pipe: there is no end of the output before the worker's own.
    ended = subprocess.run(
        [sys.executable, tmp_path / "orphans.py"], capture_output=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"")
