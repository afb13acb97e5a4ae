"""Compilation is announced, loading is not."""

import importlib
import logging
import sys
import time

import pytest
from numba import config, njit

from meltpoint.kernels import compiling
from meltpoint.progress import COMPILING, silent

MODULE = """
from meltpoint.kernels.compiling import compiled

@compiled
def first(x):
    return x + 1

@compiled
def second(x):
    return 2 * x
"""


@pytest.fixture
def make_kernels(tmp_path, monkeypatch):
    """Gives two kernels of a module with a cache of its own, as a new process would import them."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(config, "CACHE_DIR", "")  # beside the module
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "kernels_of_a_test.py").write_text(MODULE)

    def make():
        sys.modules.pop("kernels_of_a_test", None)
        module = importlib.import_module("kernels_of_a_test")
        return module.first, module.second

    yield make
    sys.modules.pop("kernels_of_a_test", None)


def test_compilation_is_announced_and_loading_is_not(make_kernels):
    said = []

    def call(kernels):
        with compiling.preparing_kernels(lambda *report: said.append(report)):
            assert [kernel(3) for kernel in kernels] == [4, 6]

    kernels = make_kernels()
    call(kernels)
    announced = [(COMPILING, 0.0, 1.0), (COMPILING, 1.0, 1.0)]
    assert said == announced  # once for both kernels
    call(kernels)
    again = make_kernels()
    call(again)
    assert [sum(kernel.stats.cache_hits.values()) for kernel in again] == [1, 1]
    assert said == announced


def test_who_stops_at_the_announcement_is_obeyed(make_kernels):
    def stop(*_report):
        raise KeyboardInterrupt

    first, _ = make_kernels()
    with pytest.raises(KeyboardInterrupt), compiling.preparing_kernels(stop):
        first(1)
    assert not first.overloads
    assert first(1) == 2  # nothing is locked or half done


def test_the_log_tells_of_compilation_that_takes_a_while(monkeypatch, caplog):
    def compile_anew():
        njit(lambda x: x + 1)(1)

    with caplog.at_level(logging.INFO, logger="meltpoint"):
        monkeypatch.setattr(compiling, "_SECONDS", 60.0)
        with compiling.preparing_kernels(silent):
            compile_anew()
        monkeypatch.setattr(compiling, "_SECONDS", 0.01)
        with compiling.preparing_kernels(silent):
            time.sleep(0.1)  # without compiling anything
        assert caplog.records == []
        with compiling.preparing_kernels(silent):
            compile_anew()
            end = time.monotonic() + 10
            while not caplog.records and time.monotonic() < end:
                time.sleep(0.01)
    assert [record.getMessage() for record in caplog.records] == [COMPILING]
