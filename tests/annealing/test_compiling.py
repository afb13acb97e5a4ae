"""Cached machine code is run only while every source it was compiled from is as it was."""

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
_OWN = {  # the sources that loops over graphs have to themselves
    "bit_graph.py": ("chains", "bit_draws", "bit_graph"),
    "table_graph.py": ("chains", "table_draws", "table_graph"),
}
_OTHERS = {"__init__", "graph_packing", "table_packing"}.union(*_OWN.values())
_LOOP = "backends/numba/kernels"
LOOPS = [
    *(
        ("tile.py", f"{_LOOP}/{path.name}")
        for path in sorted((PACKAGE / _LOOP).glob("*.py"))
        if path.stem not in _OTHERS
    ),
    *((loop, f"{_LOOP}/{stem}.py") for loop, stems in _OWN.items() for stem in stems),
    *((loop, f"kernels/{stem}.py") for loop in _OWN for stem in ("compiling", "polynomials", "xoshiro")),
    *(
        ("tile.py", f"kernels/{stem}.py")
        for stem in ("compiling", "polynomials", "rows", "streams", "xoshiro")
    ),
]

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


@pytest.mark.parametrize(("loop", "changed"), LOOPS)
def test_every_kernel_source_is_in_the_digest_of_its_annealing_loop(loop, changed, tmp_path, monkeypatch):
    copy = tmp_path / "meltpoint"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiling, "_PACKAGE", copy)
    source = copy / _LOOP / loop
    before = code_digest.__wrapped__(source)
    assert code_digest.__wrapped__(source) == before
    with (copy / changed).open("a") as file:
        file.write("\n")
    compiling._read.cache_clear()  # as in another process
    assert code_digest.__wrapped__(source) != before


@pytest.mark.parametrize("library", ["numba", "llvmlite", "np"])
def test_versions_are_in_the_digest(library, monkeypatch):
    before = code_digest.__wrapped__(KERNELS[0])
    monkeypatch.setattr(getattr(compiling, library), "__version__", "0.0")
    assert code_digest.__wrapped__(KERNELS[0]) != before


def test_files_with_compiled_functions_are_traced_to_what_they_use():
    sources = compiling._sources(PACKAGE / "training" / "phases.py")
    assert {"phases.py", "numerics.py", "polynomials.py", "xoshiro.py", "streams.py"} <= {
        p.name for p in sources
    }
    for path in PACKAGE.rglob("*.py"):
        # An import that the digest does not follow would be one of a relative name.
        assert not re.search(r"^\s*from \.", path.read_text(), re.MULTILINE), path


def test_old_versions_do_not_pile_up(tmp_path):
    now = time.time()
    for age in range(6):
        for name in (
            f"tile.f-3.py311-digest{age}-signature.nbi",
            f"tile.f-3.py311-digest{age}-signature.1.nbc",
        ):
            (tmp_path / name).write_text("")
            os.utime(tmp_path / name, (now - age, now - age))
    # Of other modules; and as Numba and earlier versions name them.
    others = ["tile.cpython-311.pyc", "tiles.f-3.py311-digest9-signature.nbi"]
    earlier = ["tile.f-3.py311.1.nbc", "tile.f-3.py311-digest5.1.nbc"]
    for name in [*others, *earlier, "tile.g-9.py311-digest5-signature.nbi.tmp.12ab"]:
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (now - 5, now - 5))
    remove_old_versions(tmp_path, "tile")
    kept = {f"tile.f-3.py311-digest{age}-signature{end}" for age in range(3) for end in (".nbi", ".1.nbc")}
    assert {path.name for path in tmp_path.iterdir()} == kept | set(others)


def test_signatures_have_files_of_their_own(tmp_path, monkeypatch):
    # With one index for both, a process that had read it before another wrote would overwrite the other's code.
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    kernel = compiling.compiled(_plus_one)
    assert (kernel(1), kernel(1.5)) == (2, 2.5)
    written = [path.name for path in tmp_path.rglob("*.nbc")]
    assert len({name.split(".")[-3] for name in written}) == len(written) == 2
