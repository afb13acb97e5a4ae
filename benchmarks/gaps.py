"""What `gap=` takes: time, chain-steps, stages and the half width that was reached, over seeds.

    python benchmarks/gaps.py --model mnistCD25-500 --gap 0.1 --seeds 0 1 2
    python benchmarks/gaps.py --asked --paper mnistvh_CD25.mat

A model is one of the zoo or a file. `--asked` runs what a time was set for: plus or minus 0.1 and 0.02 on the paper's
RBM (the file `--paper`, or the zoo's mnistCD25-500) and 0.5 on the zoo's MNIST DBM. Processor time is given beside wall
time: half of it estimates what two idle cores take.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

ZOO = Path(__file__).resolve().parents[1] / "zoo"


def main() -> None:
    """One case, or all that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="mnistCD25-500")
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--gap", default="0.1")
    parser.add_argument("--budget", default="8m")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--asked", action="store_true", help="the three cases that a time was set for")
    parser.add_argument("--paper", default="mnistCD25-500", help="the paper's RBM, with --asked")
    asked = parser.parse_args()
    cases = [(asked.paper, "0.1"), ("mnistDBM-500-1000", "0.5"), (asked.paper, "0.02")]
    for model, gap in cases if asked.asked else [(asked.model, asked.gap)]:
        asked.model, asked.gap = model, gap
        _measure_all(asked)


def _measure_all(asked: argparse.Namespace) -> None:
    """A line for every seed of one case, and the means."""
    print(f"{asked.model}, --gap {asked.gap} --budget {asked.budget}")
    print("seed  wall s  processor s / 2  half width  million chain-steps  stages (steps x AIS chains)")
    rows = [_measure(asked, seed) for seed in asked.seeds]
    mean = [sum(row[k] for row in rows) / len(rows) for k in range(4)]
    print(f"mean  {mean[0]:6.1f}  {mean[1]:15.1f}  {mean[2]:10.3f}  {mean[3]:19.1f}")


def _measure(asked: argparse.Namespace, seed: int) -> tuple[float, float, float, float]:
    """Wall seconds, half the processor's, half width, and millions of chain-steps of one call in a new process."""
    model = asked.model if Path(asked.model).suffix else str(ZOO / f"{asked.model}.npz")
    command = [sys.executable, "-m", "meltpoint", "evaluate", model, asked.data]
    command += [
        "--train",
        asked.data,
        "--gap",
        asked.gap,
        "--budget",
        asked.budget,
        "--seed",
        str(seed),
        "--json",
    ]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)  # 1: not to be trusted
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report = json.loads(done.stdout)
    low, high = report["between"]
    million = (_chain_steps(report["stages"]) + report["pilot"]["chain_steps"]) / 1e6
    stages = ", ".join(f"{stage['steps']:,.0f} x {stage['ais_chains']:,.0f}" for stage in report["stages"])
    width = (high - low) / 2
    print(
        f"{seed:4}  {wall:6.1f}  {processor / 2:15.1f}  {width:10.3f}  {million:19.1f}  {stages}", flush=True
    )
    return wall, processor / 2, width, million


def _chain_steps(stages: list[dict[str, float]]) -> float:
    """What was computed for stages: one that has grown was computed once."""
    largest: dict[tuple[float, float], float] = {}
    for stage in stages:
        path = stage["steps"], stage["chains"]
        largest[path] = max(largest.get(path, 0.0), stage["chain_steps"])
    return sum(largest.values())


if __name__ == "__main__":
    main()
