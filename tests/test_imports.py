"""What starting costs is imports, and they can be counted, which a busy machine's clock cannot."""

import json
import subprocess
import sys

import pytest

NAMES = "RBM, DBM, Ising, ais_log_z, evaluate, exact_log_z, load, log_z, raise_log_prob, sample, train_rbm"
NOT_AT_FIRST = {
    "dask",
    "distributed",
    "filelock",
    "h5py",
    "matplotlib",
    "numpy.f2py",  # which scipy.sparse imports
    "numpy.testing",
    "pandas",
    "pooch",
    "rich",
    "scipy.io",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "sklearn",
    "torch",
    "typer",
}
FIRST_CALL = """
import numpy as np
from meltpoint import RBM, ais_log_z
said = []
model = RBM(np.full((40, 33), 0.01), np.zeros(40), np.zeros(33))
ais_log_z(model, steps=2, chains=2, progress=lambda task, _done, _total: said.append(task))
"""


def imported_by(code: str, then: str = "[]"):
    """The modules that a program imports, and the value of an expression in the end."""
    code += f"\nimport json, sys\nprint(json.dumps([list(sys.modules), {then}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, value = json.loads(done.stdout)
    return set(modules), value


def test_importing_the_package_imports_nothing_else():
    modules, _ = imported_by("import meltpoint")
    assert not modules & (NOT_AT_FIRST | {"llvmlite", "numba", "numpy", "scipy"})


def test_public_names_import_what_a_plain_call_needs_and_no_more():
    modules, _ = imported_by(f"from meltpoint import {NAMES}")
    assert {"numba", "numpy"} < modules  # it does look
    assert not modules & NOT_AT_FIRST


@pytest.mark.slow
def test_a_first_call_with_kernels_in_the_cache_does_not_set_up_the_compiler():
    imported_by(FIRST_CALL)  # compiles them, if nobody has
    modules, said = imported_by(FIRST_CALL, "said")
    assert set(said) == {"AIS"}
    # Numba imports SciPy's linear algebra when it sets up its compiler.
    assert not modules & (NOT_AT_FIRST | {"numba.np.linalg", "numba.np.arraymath"})
