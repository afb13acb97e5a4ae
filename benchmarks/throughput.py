"""Chain-steps per second, against the matrix products alone and against others; memory; starting time.

    python benchmarks/throughput.py            everything, in less than ten minutes
    python benchmarks/throughput.py --quick    every row, too short to quote

A chain-step is one move and one weight update of one chain. The dense bound is nothing but the float32 matrix
products of a step. Machines are noisy, so only ratios within a round count: the bound is measured right
before and right after each case, competitors run in turn with us, and the table shows medians over rounds.
"""

import argparse
import json
import platform
import sys
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import competitors
from cases import PAPER_MODEL, Case, all_cases, tiny_case
from effort import FULL, QUICK, Effort
from fresh import memory_section, start_section
from graphs import graph_sections
from scaling import constancy_section, threads_section
from speed import speed_sections
from table import Section
from threadpoolctl import threadpool_info, threadpool_limits

from meltpoint.formats.atomic import atomic_write
from meltpoint.kernels.compiling import check_threads

RESULTS = Path(__file__).resolve().parent / "results" / "throughput.json"
PARTS = ("speed", "graphs", "threads", "constancy", "memory", "start")


def main() -> int:
    """Measure, print and write; 1 if something asked for was not reached."""
    options = _options()
    effort = QUICK if options.quick else FULL
    threads = check_threads(None)
    rivals = () if options.no_competitors else tuple(competitors.ASKED)
    if rivals and not competitors.PYTHON.is_file():
        print("no .venv-bench: make bench makes it, --no-competitors does without", file=sys.stderr)
        return 2
    machine = _machine(threads)
    print(f"meltpoint {machine['meltpoint']}, {threads} threads on {machine['processor']}, {machine['blas']}")
    if options.quick:
        print("A quick run: it shows that everything runs; its figures mean little, and nothing is judged.")
    if not PAPER_MODEL.is_file():
        print(
            f"No ../shared/models/{PAPER_MODEL.name}: its rows are left out, a random sparse model stands in."
        )
    begun = time.monotonic()
    sections = []
    with threadpool_limits(threads, user_api="blas"):
        for part in options.only:
            for section in _sections(part, threads, effort, rivals):
                sections.append(section.unjudged() if options.quick else section)
                print(sections[-1], flush=True)
    seconds = round(time.monotonic() - begun)
    verdicts = [row.passed for section in sections for row in section.rows if row.passed is not None]
    _write(
        options.json,
        {
            "machine": machine,
            "quick": options.quick,
            "seconds": seconds,
            "asked": len(verdicts),
            "reached": sum(verdicts),
            "sections": [section.to_dict() for section in sections],
        },
    )
    judged = "" if options.quick else f"{sum(verdicts)} of {len(verdicts)} as asked. "
    print(f"\n{judged}{seconds} s, written to {options.json}")
    return 0 if all(verdicts) else 1


def _sections(part: str, threads: int, effort: Effort, rivals: tuple[str, ...]) -> list[Section]:
    """The tables of one part of the benchmark."""
    if part == "memory":
        return [memory_section(effort.memory_steps, effort.memory_chains, _say)]
    if part == "start":
        return [start_section(effort.starts, _say)]
    if part == "graphs":
        return graph_sections(effort, bool(rivals), _say)
    cases, tiny = _cases()
    if part == "speed":
        return speed_sections(cases, tiny, threads, effort, rivals, _say)
    if part == "constancy":
        pairs = {"784 x 500": (cases[0], effort.large), "64 x 32": (tiny, effort.small)}
        return [constancy_section(pairs, threads, effort.scaling_rounds, _say)]
    return [threads_section(cases[0], effort, _say)] if threads > 1 else []


@cache
def _cases() -> tuple[list[Case], Case]:
    """The models of all parts: pilots of deep ones take seconds."""
    return all_cases(), tiny_case()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Throughput, memory and starting time.")
    parser.add_argument("--quick", action="store_true", help="every row, too short to quote")
    parser.add_argument("--no-competitors", action="store_true", help="leave out what is in .venv-bench")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some parts of the benchmark")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="where the figures go")
    return parser.parse_args()


def _machine(threads: int) -> dict[str, Any]:
    """What the figures depend on."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    blas = next((pool for pool in pools if "numpy" in pool["filepath"]), pools[0])  # SciPy has one of its own
    return {
        "processor": _processor(),
        "threads": threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        "blas": f"{blas['internal_api']} {blas['version']}",
        **{package: version(package) for package in ("meltpoint", "numpy", "numba")},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _write(path: Path, results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write((json.dumps(results, indent=1) + "\n").encode())


def _say(what: str) -> None:
    """Where it is, on one line that the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r{what:<78}\r", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
