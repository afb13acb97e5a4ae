"""Local worker processes: dead ones are told, and none outlives its main process."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future

import pytest

from meltpoint.errors import InputError, SystemFailure
from meltpoint.runs.executor import ReportingExecutor
from meltpoint.runs.processes import processes


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_a_number_of_workers(n):
    with pytest.raises(InputError, match="found workers="), processes(n):
        pass


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_dead_worker_is_a_failure_of_the_system():
    with processes(1) as executor:
        with pytest.raises(SystemFailure, match="workers that ended before their work was done"):
            executor.submit(die).result()
        with pytest.raises(SystemFailure, match="workers that ended before their work was done"):
            executor.submit(os.getpid)


class Silent:
    """An executor that never begins a task."""

    def submit(self, *_):
        self.future = Future()
        return self.future


def test_tasks_are_given_up_together_and_cancelled_one_by_one():
    executor = ReportingExecutor(Silent())
    cancelled = executor.submit(os.getpid)
    cancelled.cancel()
    assert executor.inner.future.cancelled()
    waiting = executor.submit(os.getpid)
    assert executor.busy
    problem = SystemFailure(found="a", expected="b", remedy="c")
    executor.give_up(problem)
    assert not executor.busy
    assert waiting.exception() is problem
    executor.inner.future.set_result(1)  # too late, and no harm
    with pytest.raises(SystemFailure):
        executor.submit(os.getpid)


ORPHANS = """
import os, signal
from meltpoint.runs.processes import processes
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
