"""What only a new process can tell: memory, the time of the first call, and a read-only installation."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from speed import Say
from table import Row, Section

import meltpoint.errors

PROBE = Path(__file__).resolve().parent / "probe.py"
PACKAGE = Path(meltpoint.errors.__file__).parent

_MEGABYTES = 300
_FIRST_SECONDS, _LATER_SECONDS = 7, 0.5


def memory_section(long: int, chains: int, say: Say) -> Section:
    """Peak memory of one AIS call: for more steps, for more chains, and in all."""
    say("memory")
    few, many = (_memory(64, steps) for steps in (long // 10, long))
    runs = [_memory(factor * chains, 10) for factor in (1, 2, 4, 8)]
    call, whole = runs[0]["growth"], runs[0]["peak"]
    difference = many["growth"] - few["growth"]
    slopes = [1024 * (runs[k + 1]["growth"] - runs[k]["growth"]) / (2**k * chains) for k in (1, 2)]
    linear = slopes[1] / slopes[0] if slopes[0] > 0 else None
    rows = (
        Row(
            f"64 chains, {long:,} steps less {long // 10:,}",
            f"{difference:+.1f} MB",
            asked="within 2 MB",
            passed=abs(difference) <= 2,
            details={"few": few, "many": many},
        ),
        Row(
            f"per chain, {4 * chains:,} to {8 * chains:,} chains",
            f"{slopes[1]:.2f} kB",
            linear,
            "0.75 to 1.33",
            linear is not None and 0.75 <= linear <= 4 / 3,
            {"kilobytes": slopes, "runs": runs},
        ),
        Row(f"{chains:,} chains, the call", f"{call:.0f} MB", None, "< 300", call < _MEGABYTES),
        Row(f"{chains:,} chains, the whole process", f"{whole:.0f} MB", None, "< 300", whole < _MEGABYTES),
    )
    note = f"The ratio is to the memory per chain from {2 * chains:,} to {4 * chains:,} chains."
    return Section("Memory, RBM 784 x 500", "peak", "ratio", rows, note)


def start_section(repeats: int, say: Say) -> Section:
    """The first call ever, the first call of later processes, and both where nothing can be written."""
    say("first calls")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # with it every process would compile meltpoint's own source
        cold = _probe("first", env=env)
        warm = [_probe("first", env=env) for _ in range(repeats)]
        read_only = _read_only_rows(folder)
    announced = any("compil" in text for text in cold["said"])
    quiet = not any("compil" in text for run in warm for text in run["said"])
    first = cold["call"]
    later = statistics.median(run["call"] for run in warm)
    whole = statistics.median(run["call"] + run["import"] for run in warm)
    rows = (
        Row(
            "first call, with compilation",
            f"{first:.1f} s",
            None,
            f"< {_FIRST_SECONDS}",
            first < _FIRST_SECONDS,
            cold,
        ),
        Row("- says that it compiles", "yes" if announced else "no", None, "yes", announced),
        Row(
            "first call of a later process",
            f"{later:.2f} s",
            None,
            f"< {_LATER_SECONDS}",
            later < _LATER_SECONDS,
            {"runs": warm},
        ),
        Row("- with all imports", f"{whole:.2f} s", None, f"< {_LATER_SECONDS}", whole < _LATER_SECONDS),
        Row("- says that it compiles", "no" if quiet else "yes", None, "no", quiet),
        *read_only,
    )
    return Section("Starting, RBM 784 x 500", "time", "", rows)


def _read_only_rows(folder: Path) -> list[Row]:
    """First calls of an installation that cannot be written to, with and without a home for the cache."""
    prefix: list[str] = []
    if os.geteuid() == 0:  # permissions do not bind root, unless it gives up the right to ignore them
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            return [Row("read-only installation", "left out: root without setpriv")]
        prefix = [setpriv, "--bounding-set=-dac_override,-dac_read_search"]
    site, home = folder / "site", folder / "home"
    shutil.copytree(PACKAGE, site / "meltpoint", ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    env |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    rows = []
    _set_permissions(site, 0o555, 0o444)
    try:
        for name, place in (("", home), (", later process", home), (", no home either", site)):
            try:
                run = _probe("first", env=env | {"HOME": str(place)}, prefix=prefix)
                figure, details = f"{run['call']:.2f} s", run
            except subprocess.CalledProcessError as problem:
                figure, details = "breaks", {"error": problem.stderr.strip().splitlines()[-1:]}
            rows.append(
                Row(f"read-only installation{name}", figure, None, "works", figure != "breaks", details)
            )
    finally:
        _set_permissions(site, 0o755, 0o644)
    return rows


def _set_permissions(folder: Path, folders: int, files: int) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(folders if path.is_dir() else files)


def _memory(chains: int, steps: int) -> dict[str, float]:
    run = _probe("memory", chains, steps)
    return run | {"growth": run["peak"] - run["before"]}


def _probe(
    *arguments: object, env: Mapping[str, str] | None = None, prefix: list[str] | None = None
) -> dict[str, Any]:
    command = [*(prefix or []), sys.executable, str(PROBE), *map(str, arguments)]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)
