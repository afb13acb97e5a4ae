"""A second process that compiles changes nothing but the time, whatever becomes of it."""

import importlib
import json
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import config, njit

from meltpoint.annealing.base import uniform
from meltpoint.backends.registry import prepare_path
from meltpoint.kernels import announcing, parallel_compiling
from meltpoint.kernels.compiling import is_compiled
from meltpoint.kernels.parallel_compiling import KernelCall, compile_calls
from meltpoint.models.rbm import RBM
from meltpoint.progress import silent

MODULE = """
from typing import NamedTuple
import numpy as np
from meltpoint.kernels.compiling import compiled

class Pair(NamedTuple):
    x: np.ndarray
    scale: float

@compiled
def first(x):
    return x + 1

@compiled
def second(pair, times, none):
    total = 0.0
    for k in range(pair.x.size):
        total += pair.scale * pair.x[k]
    return times * total if none is None else 0.0
"""
FAILING = (
    "import sys; sys.exit(1)",
    "import os; os.kill(os.getpid(), 9)",
    "import sys; sys.stdin.read(1); raise MemoryError",
    "import time; time.sleep(60)",  # longer than it is waited for
)


@pytest.fixture
def make_calls(tmp_path, monkeypatch):
    """Makes a module of two kernels with a cache of its own, and gives calls of them."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(config, "CACHE_DIR", "")  # beside the module, in the other process too
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def make(place="here"):
        folder, name = tmp_path / place, "kernels_of_a_test"
        if not folder.exists():
            folder.mkdir()
            (folder / f"{name}.py").write_text(MODULE)
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        module = importlib.import_module(name)
        held = np.ones(3)
        held.flags.writeable = False
        return [KernelCall(module.first, (1,)), KernelCall(module.second, (module.Pair(held, 2.0), 5, None))]

    return make


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    processes = []
    start = parallel_compiling._start

    def recorded(calls):
        processes.append(start(calls))
        return processes[-1]

    monkeypatch.setattr(parallel_compiling, "_start", recorded)
    return processes


def cache_hits(call):
    return call.kernel.stats.cache_hits.get(call.signature, 0)


def results(calls):
    return [call.kernel(*call.arguments) for call in calls]


def cached_files(call):
    return sorted(path.name for path in Path(call.kernel._cache.cache_path).glob("*.nb[ic]"))


@pytest.mark.slow
def test_two_processes_write_the_files_that_one_writes(make_calls, started):
    alone = make_calls("alone")
    compile_calls(alone)
    assert started == []
    together = make_calls("together")
    compile_calls(together, processes=2)
    assert [process.returncode is not None for process in started] == [True]
    assert [cache_hits(call) for call in together] == [0, 1]  # the second was compiled elsewhere
    assert results(together) == results(alone) == [2, 30.0]
    assert cached_files(together[0]) == cached_files(alone[0])
    assert len(cached_files(alone[0])) == 4  # an index and machine code for each
    # Another process: everything is there, and nothing is started.
    again = make_calls("together")
    compile_calls(again, processes=2)
    assert [cache_hits(call) for call in again] == [1, 1]
    assert len(started) == 1
    compile_calls(again, processes=2)
    assert len(started) == 1


@pytest.mark.parametrize("program", FAILING)
def test_a_process_that_fails_costs_only_time(program, make_calls, started, monkeypatch):
    monkeypatch.setattr(parallel_compiling, "_PROGRAM", program)
    monkeypatch.setattr(parallel_compiling, "_LONGEST_WAIT", 0.05)
    calls = make_calls()
    compile_calls(calls, processes=2)
    assert [process.returncode is not None for process in started] == [True]
    assert [cache_hits(call) for call in calls] == [0, 0]
    assert results(calls) == [2, 30.0]


def test_an_interruption_leaves_no_process_behind(make_calls, started, monkeypatch):
    calls = make_calls()

    def interrupted(_call):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelCall, "compile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_calls(calls, processes=2)
    assert [process.returncode is not None for process in started] == [True]


def test_the_second_process_ends_with_the_first(tmp_path):
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-c", parallel_compiling._PROGRAM, str(tmp_path), *sys.path], stdin=subprocess.PIPE
    )
    asked = json.dumps([{"module": "endless", "name": "f", "arguments": []}])
    process.stdin.write(f"{asked}\n".encode())
    process.stdin.close()
    assert process.wait(timeout=50) == 1


@pytest.mark.parametrize("case", ["one process", "one kernel", "no cache", "embedded", "no description"])
def test_no_process_is_started_where_it_is_of_no_use(case, make_calls, monkeypatch):
    def no_process(*_arguments, **_options):
        raise AssertionError

    monkeypatch.setattr(subprocess, "Popen", no_process)
    calls = make_calls()
    if case == "one kernel":
        calls = calls[:1]
    elif case == "no cache":
        monkeypatch.setattr(parallel_compiling, "is_cached", lambda _kernel: False)
    elif case == "embedded":
        monkeypatch.setattr(sys, "executable", "/usr/bin/editor")
    elif case == "no description":
        calls[1] = KernelCall(calls[0].kernel, (np.ones((4, 2))[::2],))
    compile_calls(calls, processes=1 if case == "one process" else 2)
    assert all(is_compiled(call.kernel, call.signature) for call in calls)


class Named(NamedTuple):
    x: np.ndarray
    on: bool


@pytest.mark.parametrize("precision", ["mixed", "float32", "float64"])
def test_descriptions_have_the_types_of_the_kernels_arguments(precision):
    model = RBM(np.full((40, 33), 0.01), np.zeros(40), np.zeros(33))
    calls = prepare_path(model.path(uniform()), precision).kernel_calls()
    assert len(calls) == (3 if precision == "mixed" else 1)
    calls.append(KernelCall(calls[0].kernel, (Named(np.ones((2, 3), np.int16), np.True_), 1.5, 2, None)))
    for call in calls:
        described = json.loads(json.dumps(parallel_compiling._described_call(call)))
        assert parallel_compiling._call(described).signature == call.signature
        assert parallel_compiling._call(described).kernel is call.kernel


def test_compilation_is_announced_and_loading_is_not(make_calls):
    said = []

    def prepare(calls):
        with announcing.preparing_kernels(lambda *report: said.append(report)):
            compile_calls(calls, processes=2)

    calls = make_calls()
    prepare(calls)
    announced = [(announcing.PREPARING, 0.0, 1.0), (announcing.PREPARING, 1.0, 1.0)]
    assert said == announced  # once for both kernels
    prepare(calls)
    again = make_calls()  # as in another process
    prepare(again)
    assert [cache_hits(call) for call in again] == [1, 1]
    assert said == announced


def test_who_stops_at_the_announcement_is_obeyed(make_calls):
    def stop(*_report):
        raise KeyboardInterrupt

    calls = make_calls()
    with pytest.raises(KeyboardInterrupt), announcing.preparing_kernels(stop):
        compile_calls(calls)
    assert not any(call.is_ready for call in calls)
    compile_calls(calls)  # nothing is locked or half done
    assert results(calls) == [2, 30.0]


def test_the_log_tells_of_compilation_that_takes_a_while(monkeypatch, caplog):
    def compile_anew():
        njit(lambda x: x + 1)(1)

    with caplog.at_level(logging.INFO, logger="meltpoint"):
        monkeypatch.setattr(announcing, "_SECONDS", 60.0)
        with announcing.preparing_kernels(silent):
            compile_anew()
        monkeypatch.setattr(announcing, "_SECONDS", 0.01)
        with announcing.preparing_kernels(silent):
            time.sleep(0.1)  # without compiling anything
        assert caplog.records == []
        with announcing.preparing_kernels(silent):
            compile_anew()
            end = time.monotonic() + 10
            while not caplog.records and time.monotonic() < end:
                time.sleep(0.01)
    assert [record.getMessage() for record in caplog.records] == [announcing.PREPARING]


def test_signatures_have_files_of_their_own(make_calls):
    # With one index for both, a process that had read it before the other wrote would overwrite the other's code.
    first = make_calls()[0].kernel
    compile_calls([KernelCall(first, (1,)), KernelCall(first, (1.5,))])
    assert (
        len({name.split(".")[-3] for name in cached_files(KernelCall(first, ())) if name.endswith("c")}) == 2
    )
