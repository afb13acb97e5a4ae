"""A run of the suite that is stopped has named the tests that failed until then."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
FAILS = """
def test_works(): pass
def test_fails(): assert False
"""
WAITS = """
import time, pytest
@pytest.fixture
def broken(): raise ValueError
def test_without_fixture(broken): pass
def test_waits(): time.sleep(100)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals and sessions as POSIX has them")
@pytest.mark.parametrize(
    ("stop", "workers"),
    [
        pytest.param(signal.SIGINT, (), id="SIGINT"),
        pytest.param(signal.SIGINT, ("-n", "2"), id="SIGINT-workers"),
        pytest.param(signal.SIGKILL, ("-n", "2"), id="SIGKILL-workers"),
    ],
)
def test_failed_tests_are_named_before_the_end(tmp_path, stop, workers):
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_a.py").write_text(FAILS)
    (tmp_path / "test_b.py").write_text(WAITS)
    expected = ["FAILED test_a.py::test_fails", "FAILED test_b.py::test_without_fixture (setup)"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    output = tmp_path / "output"
    with output.open("wb") as file:
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers],
            cwd=tmp_path,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and not all(line in output.read_text() for line in expected):
            time.sleep(0.05)
        assert run.poll() is None, output.read_text()
        run.send_signal(stop)
        with suppress(subprocess.TimeoutExpired):  # the test that waits may keep its worker
            run.wait(1)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)  # what is left: workers that still wait
        run.wait()
    lines = output.read_text().splitlines()
    assert [line in lines for line in expected] == [True, True], output.read_text()
