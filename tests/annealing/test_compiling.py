"""Cached machine code is run only while every source it was compiled from is as it was."""

import ast
import os
import re
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from numba import config, njit

from meltpoint.kernels import compiling
from meltpoint.kernels.compiling import code_digest, remove_old_versions

PACKAGE = Path(compiling.__file__).parents[1]
KERNELS = sorted((PACKAGE / "kernels").glob("*.py"))


# The smallest compiled function that has a callee in another file, which has one in a third.
CALLER = """
from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.callee import twice

@compiled
def f(x):
    return twice(x) + 1
"""
CALLEE = """
from meltpoint.kernels.compiling import compiled
from meltpoint.kernels.constants import FACTOR

@compiled
def twice(x):
    return FACTOR * x
"""
RUN = """
from meltpoint.kernels.caller import f
print(f(10), sum(f.stats.cache_hits.values()))
"""
# Machine code that allocates, raises and calls the C library, and what Numba imports to compile.
ALLOCATING = """
import numpy as np
from meltpoint.kernels.compiling import compiled

@compiled
def cumulative_exp(x):
    if x.size == 0:
        raise ValueError("empty")
    out = np.empty(x.size)
    total = 0.0
    for k in range(x.size):
        total += np.exp(x[k])
        out[k] = total
    return out
"""
LOAD = """
import sys
import numpy as np
from meltpoint.kernels.allocating import cumulative_exp
print(cumulative_exp(np.zeros(3))[-1], sum(cumulative_exp.stats.cache_hits.values()))
print("scipy.linalg" in sys.modules)
try:
    cumulative_exp(np.zeros(0))
except ValueError as problem:
    print(problem)
print(cumulative_exp(np.zeros(3, np.float32))[-1], "scipy.linalg" in sys.modules)
"""


@pytest.fixture
def site(tmp_path):
    """A copy of the package with three more kernel files."""
    shutil.copytree(PACKAGE, tmp_path / "meltpoint", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "meltpoint" / "kernels"
    (kernels / "caller.py").write_text(CALLER)
    (kernels / "callee.py").write_text(CALLEE)
    (kernels / "constants.py").write_text("FACTOR = 2\n")
    return tmp_path


def run(site, code=RUN, **environment):
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    env |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_a_change_in_a_file_that_is_only_called_is_compiled(site):
    kernels = site / "meltpoint" / "kernels"
    assert run(site) == ["21", "0"]
    assert run(site) == ["21", "1"]  # from the cache
    (kernels / "constants.py").write_text("FACTOR = 3\n")
    assert run(site) == ["31", "0"]
    (kernels / "callee.py").write_text(CALLEE.replace("* x", "* x + 5"))
    assert run(site) == ["36", "0"]
    (kernels / "callee.py").write_text(CALLEE)
    assert run(site) == ["31", "1"]  # back at a version that is still there


@pytest.mark.slow
def test_numba_alone_would_run_stale_code(site):
    # The mutant: the decorator as Numba provides it. If this fails, the test above has nothing to detect.
    kernels = site / "meltpoint" / "kernels"
    (kernels / "compiling.py").write_text("from numba import njit\ncompiled = njit(cache=True)\n")
    assert run(site) == ["21", "0"]
    (kernels / "constants.py").write_text("FACTOR = 3\n")
    assert run(site) == ["21", "1"]


@pytest.mark.slow
def test_nothing_is_cached_where_nothing_can_be_written(site):
    blocked = site / "file"  # no directory can be made below a file, whoever asks
    blocked.write_text("")
    pycache = site / "meltpoint" / "kernels" / "__pycache__"
    pycache.write_text("")
    for _ in range(2):
        assert run(site, HOME=str(blocked), XDG_CACHE_HOME=str(blocked)) == ["21", "0"]
    assert run(site, HOME=str(site), XDG_CACHE_HOME=str(site / "cache")) == ["21", "0"]
    assert run(site, HOME=str(site), XDG_CACHE_HOME=str(site / "cache")) == ["21", "1"]


@pytest.mark.slow
def test_loading_does_not_set_up_the_compiler(site):
    (site / "meltpoint" / "kernels" / "allocating.py").write_text(ALLOCATING)
    assert run(site, LOAD) == ["3.0", "0", "True", "empty", "3.0", "True"]
    assert run(site, LOAD) == ["3.0", "1", "False", "empty", "3.0", "False"]
    another_type_then = LOAD.replace("np.float32", "np.int64")  # which is compiled after the first was loaded
    assert run(site, another_type_then) == ["3.0", "1", "False", "empty", "3.0", "True"]


def test_symbols_that_are_missing_are_looked_for_where_numba_defines_them(monkeypatch):
    refreshed, rebuilt = [], []
    context = types.SimpleNamespace(refresh=lambda: refreshed.append(True))
    impl = compiling._DigestCacheImpl(_plus_one)
    monkeypatch.setattr(
        compiling.caching.CompileResultCacheImpl, "rebuild", lambda _self, *given: rebuilt.append(given)
    )
    impl.rebuild(context, (["cos", "PyErr_SetString"], "code"))
    assert (refreshed, rebuilt) == ([], [(context, "code")])
    impl.rebuild(context, (["cos", "nobody_defines_this"], "code"))
    assert refreshed == [True]


def test_the_symbols_of_machine_code_are_those_it_does_not_define():
    function = njit(_plus_one)
    function(np.ones(3))
    (found,) = function.overloads.values()
    symbols = set(compiling._external_symbols(found.library))
    assert {"NRT_MemInfo_alloc_aligned", "PyArg_UnpackTuple", "PyExc_RuntimeError"} <= symbols
    assert not any(name.startswith("llvm.") or "plus_one" in name for name in symbols)


def _plus_one(x):
    return x + 1


@pytest.mark.parametrize("room", compiling._ROOMS)
def test_every_source_in_a_room_of_kernels_is_in_every_digest(room, tmp_path, monkeypatch):
    copy = tmp_path / "meltpoint"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiling, "_PACKAGE", copy)
    own = copy / "estimators" / "enumeration.py"
    found = set()
    for changed in (None, own, *(copy / room).glob("*.py")):
        if changed is not None:
            with changed.open("a") as file:
                file.write("\n")
        compiling._digest_of_rooms.cache_clear()  # as in another process
        found.add(code_digest(own))
    compiling._digest_of_rooms.cache_clear()
    assert len(found) == 2 + len(list((copy / room).glob("*.py")))


@pytest.mark.parametrize("library", ["numba", "llvmlite", "np"])
def test_versions_are_in_the_digest(library, monkeypatch):
    before = code_digest(KERNELS[0])
    monkeypatch.setattr(getattr(compiling, library), "__version__", "0.0")
    compiling._digest_of_rooms.cache_clear()
    changed = code_digest(KERNELS[0])
    compiling._digest_of_rooms.cache_clear()
    assert changed != before


def taken_from_elsewhere(source):
    """What compiled functions of a source, or its constants, take from modules beyond the rooms of kernels."""
    rooms = tuple(f"meltpoint.{room.replace('/', '.')}." for room in compiling._ROOMS)
    imported, used = set(), set()
    for part in ast.parse(source).body:
        if isinstance(part, ast.ImportFrom) and (part.module or ".").startswith(("meltpoint", ".")):
            assert part.level == 0
            if not f"{part.module}.".startswith(rooms):
                imported |= {alias.asname or alias.name for alias in part.names}
        elif isinstance(part, ast.Assign):
            used |= names_in(part.value)
        elif isinstance(part, ast.FunctionDef) and part.decorator_list:
            for statement in part.body:
                used |= names_in(statement)
    return imported & used


def names_in(tree):
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}


def test_compiled_functions_take_nothing_from_beyond_the_rooms_of_kernels():
    decorated = re.compile(r"^@(compiled|compiled_into_callers|emitted|intrinsic)\b", re.MULTILINE)
    files = [path for path in PACKAGE.rglob("*.py") if decorated.search(path.read_text())]
    assert len(files) > 15
    for path in files:
        assert not taken_from_elsewhere(path.read_text()), path
    stale = "from meltpoint.layers.two_state import SIZE\n@compiled\ndef f():\n    return SIZE\n"
    assert taken_from_elsewhere(stale) == {"SIZE"}


def test_old_versions_do_not_pile_up(tmp_path):
    now = time.time()
    for age in range(6):
        version = tmp_path / f"tile-{age:016d}"
        version.mkdir()
        (version / "tile.f-3.py311-signature.1.nbc").write_text("")
        os.utime(version, (now - age, now - age))
    others = ["tile.cpython-311.pyc", f"tiles-{9:016d}", f"tile-graph-{9:016d}"]
    for name in others:
        (tmp_path / name).write_text("")
    remove_old_versions(tmp_path, "tile")
    assert {path.name for path in tmp_path.iterdir()} == {f"tile-{age:016d}" for age in range(3)} | set(
        others
    )


def test_signatures_have_files_of_their_own(tmp_path, monkeypatch):
    # With one index for both, a process that had read it before another wrote would overwrite the other's code.
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    kernel = compiling.compiled(_plus_one)
    assert (kernel(1), kernel(1.5)) == (2, 2.5)
    written = [path.name for path in tmp_path.rglob("*.nbc")]
    assert len({name.split(".")[-3] for name in written}) == len(written) == 2
