"""One estimator call in a process of its own, described by a line of JSON: what it took in memory or time.

probe.py memory CHAINS STEPS      resident megabytes before the call, and at its peak
probe.py first                    seconds of import and first call, and what it said meanwhile
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def memory(chains: int, steps: int) -> dict[str, float]:
    """The call's memory, for a model of 784 x 500; the kernels are loaded before."""
    from cases import symmetric_rbm

    from meltpoint.estimators.ais import ais_log_z

    model = symmetric_rbm(784, 500)
    ais_log_z(model, steps=1, chains=1)
    if _CLEAR.exists():
        _CLEAR.write_text("5")  # forget the peak of the imports
    before = peak_megabytes()
    ais_log_z(model, steps=steps, chains=chains)
    return {"before": before, "peak": peak_megabytes()}


def first() -> dict[str, Any]:
    """The first call of this process, for a model of 784 x 500."""
    start = time.perf_counter()
    import numpy as np

    from meltpoint.estimators.ais import ais_log_z
    from meltpoint.models.rbm import RBM

    model = RBM(np.full((784, 500), 0.01), np.zeros(784), np.zeros(500))
    imported = time.perf_counter()
    said: list[str] = []
    ais_log_z(model, steps=2, chains=2, progress=lambda task, _done, _total: said.append(task))
    return {
        "import": imported - start,
        "call": time.perf_counter() - imported,
        "processor": time.process_time(),
        "said": sorted(set(said)),
    }


def peak_megabytes() -> float:
    """Largest memory of this process so far."""
    if (
        _STATUS.exists()
    ):  # better than ru_maxrss, which begins with the peak of the process that started this one
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    print(json.dumps({"memory": memory, "first": first}[command](*map(int, arguments))))
