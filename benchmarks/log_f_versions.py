"""log f of the deep models in zoo/ in two checkouts in turn: is it faster than it was, at equal error?

    git worktree add ../first 7c7e5ed
    python benchmarks/log_f_versions.py ../first . [--models NAME ...] [--examples 512] [--part 64]

Each checkout runs in a process of its own with all its threads, part of the examples after part. The table has wall
time and processor time for an example, the standard error of an example's log f, and how many times the second is
as fast as the first at equal error: the error falls as one over the square root of the draws, so that is the ratio
of time x error². Needs the data sets (MELTPOINT_DATA).
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODELS = {
    "mnistDBM-500-1000": "mnist",
    "mnistDBN-500-2000": "mnist",
    "omniDBM-1000-1000": "omniglot",
    "omniDBN-1000-1000": "omniglot",
}
_WARM_UP = 16  # examples: so that kernels are compiled before they are timed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs=2, type=Path)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--examples", type=int, default=512)
    parser.add_argument("--part", type=int, default=64)
    asked = parser.parse_args()
    print("model                first: ms wall, ms processor, error   second                x at equal error")
    for name in asked.models:
        workers = [_Worker(checkout.resolve(), name) for checkout in asked.checkouts]
        for worker in workers:
            worker.ask(0, _WARM_UP)
        answers: list[list[dict[str, float]]] = [[], []]
        for k, low in enumerate(range(0, asked.examples, asked.part)):
            for j in (0, 1) if k % 2 == 0 else (1, 0):
                answers[j].append(workers[j].ask(low, low + asked.part))
        means = [
            {key: sum(answer[key] for answer in found) / asked.examples for key in found[0]}
            for found in answers
        ]
        cells = [f"{m['wall'] * 1e3:7.2f} {m['cpu'] * 1e3:7.2f} {m['variance'] ** 0.5:6.3f}" for m in means]
        ratios = [
            means[0][clock] * means[0]["variance"] / (means[1][clock] * means[1]["variance"])
            for clock in ("wall", "cpu")
        ]
        print(
            f"{name:20} {cells[0]}   {cells[1]}   {ratios[0]:5.1f} (processor {ratios[1]:5.1f})", flush=True
        )


class _Worker:
    """A process that estimates log f of one model in one checkout."""

    def __init__(self, checkout: Path, model: str) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--worker", str(checkout), model]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=checkout
        )

    def ask(self, low: int, high: int) -> dict[str, float]:
        """Seconds and squared errors of these examples, added up."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{low} {high}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def work(checkout: Path, name: str) -> None:
    """Answer questions about one model."""
    sys.path.insert(0, str(checkout / "src"))
    import numpy as np

    import meltpoint as mp

    # Models and data are the same for both: the first version has the same files.
    model: Any = mp.load(checkout / "zoo" / f"{name}.npz")
    test = mp.datasets.load(MODELS[name]).test
    for line in sys.stdin:
        low, high = map(int, line.split())
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        found = model.log_f_estimate(test[low:high])
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        answer = {
            "wall": time.perf_counter() - begun,
            "cpu": cpu,
            "variance": float(np.square(found.stderrs).sum()),
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
