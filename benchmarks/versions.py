"""Chain-steps of two checkouts in turn, in processor time: is a case slower than it was?

    git worktree add ../first 7c7e5ed
    python benchmarks/versions.py ../first . [--rounds 5] [--only "64 x 32" DBM]

Each checkout runs in a process of its own with its own cases, one thread and one tile of chains; what a call costs
besides its steps is measured and subtracted. The table has medians over rounds: how many times the dense bound each
reaches, how many times the first the second is, and whether both found the same values. The exit code is 1 if the
second checkout is slower than 0.97 of the first in some case.
"""

import argparse
import itertools
import statistics
import subprocess
import sys
import time
from pathlib import Path

CHAINS = 128
LEAST = 0.97
SECONDS = 0.25


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs=2, type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose names contain one of these")
    asked = parser.parse_args()
    workers = [_Worker(path.resolve()) for path in asked.checkouts]
    common = set(workers[0].ask("names").split("|"))
    names = [name for name in workers[1].ask("names").split("|") if name in common]
    names = [name for name in names if any(part in name for part in asked.only)]
    slower = False
    for name in names:
        for worker in workers:
            worker.ask(f"run {name}")
        ratios: list[list[float]] = [[], [], []]
        values = set[str]()
        for k in range(asked.rounds):
            bound = float(workers[1].ask(f"bound {name}"))
            found = {}
            for j in (0, 1) if k % 2 == 0 else (1, 0):
                microseconds, value = workers[j].ask(f"run {name}").split()
                found[j] = float(microseconds)
                values.add(value)
            bound = (bound + float(workers[1].ask(f"bound {name}"))) / 2
            for column, ratio in zip(
                ratios, (bound / found[0], bound / found[1], found[0] / found[1]), strict=True
            ):
                column.append(ratio)
        medians = [statistics.median(column) for column in ratios]
        slower |= medians[2] < LEAST
        same = "the same" if len(values) == 1 else "different"
        figures = " ".join(f"{median:6.2f}" for median in medians)
        print(f"{name:46} x bound and x first: {figures}   {same} values", flush=True)
    return int(slower)


class _Worker:
    """A process that runs the cases of one checkout."""

    def __init__(self, checkout: Path) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--worker", str(checkout)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=checkout
        )

    def ask(self, question: str) -> str:
        """The answer to one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


def work(checkout: Path) -> None:
    """Answer questions about the cases of a checkout."""
    sys.path[:0] = [str(checkout / "src"), str(checkout / "benchmarks")]
    import numpy as np
    from cases import all_cases, tiny_case
    from threadpoolctl import threadpool_limits

    from meltpoint.estimators.ais import ais_log_z

    threadpool_limits(1)
    cases = {case.name: case for case in (*all_cases(), tiny_case()) if case.estimator == "AIS"}
    products: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}

    def seconds(name: str, steps: int) -> tuple[float, float]:
        case, start = cases[name], time.process_time()
        value = ais_log_z(case.model, base=case.base, steps=steps, chains=CHAINS, threads=1).value
        return time.process_time() - start, value

    def pairs(name: str) -> int:
        sizes = cases[name].model.layer_sizes
        return sum(low * high for low, high in itertools.pairwise(sizes))

    def run(name: str) -> str:
        steps = max(50, min(6000, 60_000_000 // (pairs(name) + 8_000)))
        (whole, value), (setup, _) = seconds(name, steps), seconds(name, 1)
        return f"{(whole - setup) / (CHAINS * (steps - 1)) * 1e6} {value}"

    def bound(name: str) -> str:
        if name not in products:
            model = cases[name].model
            weights = [block.weights.astype(np.float32) for block in model.mrf.blocks]
            rng = np.random.default_rng(0)
            products[name] = [
                ((rng.random((2000, w.shape[0])) < 0.5).astype(np.float32), w)
                for v in weights
                for w in (v, v.T)
            ]
        start, rounds = time.process_time(), 0
        while time.process_time() - start < SECONDS:
            for state, weights_ in products[name]:
                np.matmul(state, weights_)
            rounds += 1
        return str((time.process_time() - start) / rounds / 2000 * 1e6)

    for line in sys.stdin:
        what, _, name = line.strip().partition(" ")
        print("|".join(cases) if what == "names" else run(name) if what == "run" else bound(name), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(Path(sys.argv[2]))
    else:
        sys.exit(main())
