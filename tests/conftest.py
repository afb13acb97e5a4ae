"""Fixtures shared by all tests."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()


def _share_cores() -> None:
    """Give each worker its share of the cores: as many threads as cores in every worker cost a third more."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER"), os.environ.get("PYTEST_XDIST_WORKER_COUNT")
    if CORES and worker and workers:
        number, cores = int(worker.removeprefix("gw")), sorted(CORES)
        os.sched_setaffinity(0, cores[number % len(cores) :: int(workers)])


_share_cores()  # before the matrix library is loaded, which starts a thread for each core

# A busy machine is not a failing test.
settings.register_profile("meltpoint", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20, database=None)


def pytest_configure(config: pytest.Config) -> None:
    """`make quick` tries fewer examples of every property; `make test` tries Hypothesis's hundred."""
    settings.load_profile("quick" if config.option.markexpr == "not slow" else "meltpoint")
    config.pluginmanager.register(_FailuresAtOnce(config))


class _FailuresAtOnce:
    """Names a failed test when it has failed: pytest's own list is lost when a run is stopped."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called in the main process for tests of all workers; a worker has no terminal."""
        terminal = self._plugins.get_plugin("terminalreporter")
        if terminal is not None and report.failed:
            terminal.write("\n")  # after the letter of the test
            terminal.write_line(
                f"FAILED {report.nodeid}" + (f" ({report.when})" if report.when != "call" else "")
            )
            terminal.flush()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes hundreds of thousands of objects that stay: there is no garbage to look for among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the paper's model and data. Its absence skips a test, except in CI, where it fails it."""
    if not SHARED.is_dir():
        message = "needs ../shared (the paper's model and MNIST), which is not beside this checkout"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return SHARED


@pytest.fixture
def all_cores() -> Iterator[None]:
    """All cores, for a test of how fast something is."""
    if not CORES:
        yield
        return
    share = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    yield
    os.sched_setaffinity(0, share)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_disks():
    """Tests do not cut the power: what is asked of the disk is only checked to be an open file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session", autouse=True)
def _interruptible():
    """A suite that a shell has started in the background ignores SIGINT, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
