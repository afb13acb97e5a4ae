"""Reports have the same bits on every machine.

A fixed set of small reports (`reports.py`: RBMs of bits, Potts sites and real numbers, a DBM, a DBN, a deep DBN, Ising
and Potts models, a factor graph; evaluate, log-z and compare) is made in child processes that take themselves for other
machines, and compared to the bit with this machine's: matrix products of other processors (OPENBLAS_CORETYPE), on one
and two threads; NumPy without this processor's instructions; kernels compiled for older processors (NUMBA_CPU_NAME, and
no features but its own); one thread of ours and two. The first child also interrupts evaluations and continues them,
and gives them to worker processes.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # kernels are compiled for two more processors

FOLDER = Path(__file__).parent
CONTINUED = ("interrupted", "workers")


def without_features(*kept: str) -> str:
    """NPY_DISABLE_CPU_FEATURES for this processor's instructions but those that are kept."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name] and name not in kept)


def kernels_for(processor: str) -> dict[str, str]:
    """What makes Numba compile for a processor, or take what it has compiled for it: that is filed by processor."""
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}


def bits_of(variables: dict[str, str], *arguments: str) -> dict[str, object]:
    """The reports' bits in a process with these variables."""
    path = os.pathsep.join([str(FOLDER.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, "-m", "machines.reports", *arguments],
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> dict[str, object]:
    return bits_of({"OPENBLAS_NUM_THREADS": "2"}, "2", str(tmp_path_factory.mktemp("runs")))


def test_reports_are_the_same_interrupted_and_in_workers(own):
    continued = [name for name in own if name.startswith(CONTINUED)]
    assert len(continued) == 6
    for name in continued:
        assert own[name] == own[f"evaluate {name.split(' ', 1)[1]}"], name


def test_reports_are_the_same_on_other_machines(own):
    machines = {
        "AVX2": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": without_features("X86_V3")},
        "AVX": {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": without_features()},
        "SSE": {"OPENBLAS_CORETYPE": "Prescott", **kernels_for("nehalem")},
        "kernels for AVX2": {"OPENBLAS_NUM_THREADS": "2", **kernels_for("haswell")},
    }
    expected = {name: bits for name, bits in own.items() if not name.startswith(CONTINUED)}
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda each: bits_of({"OPENBLAS_NUM_THREADS": "1", **each}, "1"), machines.values())
        differing = {
            machine: [name for name in expected if bits[name] != expected[name]]
            for machine, bits in zip(machines, found, strict=True)
        }
    assert differing == {machine: [] for machine in machines}


def test_reports_are_of_numbers(own):
    assert np.isfinite(json.loads(own["evaluate DBM"])[0]["log_z"]["value"])
