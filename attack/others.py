"""Several processes at one folder, one process for a long time, and a Dask cluster that loses workers."""

import gc
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

import meltpoint as mp
from attack.campaign import Campaign, leftovers
from attack.command import Process, run
from attack.kills import reference
from attack.scenarios import EVALUATIONS, TRAININGS

_GROWTH = 64 << 20  # bytes: what the allocator keeps, not what is lost


def attack_concurrency(campaign: Campaign) -> None:
    """Start the same command several times at once: one computes, the others say so, and the numbers are the same."""
    known = {}
    while campaign.going_on:
        for scenario in (EVALUATIONS[0], TRAININGS[0]):
            if scenario.name not in known:
                known[scenario.name] = reference(campaign, scenario)
            if known[scenario.name] is None or not campaign.going_on:
                continue
            with campaign.folder() as folder:
                processes = []
                for _ in range(3):
                    processes.append(Process(scenario.arguments, folder))
                    time.sleep(campaign.random.uniform(0, 0.05))
                for process in processes:
                    campaign.check(process.wait().complaint(0, 1, 2), f"{scenario.name}, three at once")
                ended = run(scenario.arguments, folder)
                complaint = ended.complaint(0, 1) or leftovers(folder)
                if campaign.check(complaint, f"{scenario.name}, after three at once"):
                    same = scenario.result(folder, ended) == known[scenario.name][0]
                    campaign.check("" if same else "other numbers", f"{scenario.name}, after three at once")
            campaign.counts["races"] += 1


def attack_soak(campaign: Campaign) -> None:
    """Evaluate in one process until the time is over: memory, open files and threads must not grow."""
    with campaign.folder() as folder:
        ended = Process(lambda: _soak(campaign.seconds), folder).wait(campaign.seconds + 60)
        if campaign.check(ended.complaint(0), "soak"):
            found = json.loads(ended.out)
            campaign.counts["evaluations"] += found["evaluations"]
            first, last = found["first"], found["last"]
            if last["memory"] > first["memory"] + _GROWTH:
                campaign.check(f"memory grew from {first['memory']:,} to {last['memory']:,} bytes", "soak")
            for what in ("files", "threads"):
                grew = f"{what} grew from {first[what]} to {last[what]}"
                campaign.check(grew if last[what] > first[what] else "", "soak")


def _soak(seconds: float) -> None:
    until = time.monotonic() + seconds
    data = np.load("data.npy")
    models = [mp.load(f"{kind}.npz") for kind in ("rbm", "dbm", "dbn")]
    first, n = None, 0
    while time.monotonic() < until:
        mp.evaluate(
            models[n % 3], data, data, steps=30, chains=2, examples=10, seed=n, run=f"soak/{n % 50}-{n}"
        )
        n += 1
        if n == 30:
            first = _used()
    print(json.dumps({"evaluations": n, "first": first or _used(), "last": _used()}))


def _used() -> dict[str, int]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
        "files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
    }


def attack_dask(campaign: Campaign) -> None:
    """Kill workers of a Dask cluster while it computes: the same numbers, or exit code 3 and a run that continues."""
    scenario = EVALUATIONS[0]
    expected = reference(campaign, scenario)
    if expected is None:
        return
    with campaign.folder() as folder:
        scheduler = _dask(folder, "scheduler", "--port", "0", "--scheduler-file", "scheduler.json")
        workers = []
        try:
            address = _address(folder)
            workers = [_worker(folder, address) for _ in range(2)]
            n = 0
            while campaign.going_on:
                with campaign.folder() as trial:
                    options = ("--cluster", address, "--patience", "20")
                    process = Process((*scenario.arguments, *options), trial)
                    if campaign.random.random() < 0.5:
                        time.sleep(campaign.random.uniform(0, 6))
                        victim = campaign.random.randrange(2)
                        workers[victim].kill()
                        workers[victim].wait()
                        workers[victim] = _worker(folder, address)
                        campaign.counts["workers killed"] += 1
                    ended = process.wait()
                    if campaign.check(ended.complaint(0, 1, 3), "a cluster") and ended.code != 3:
                        same = scenario.result(trial, ended) == expected[0]
                        campaign.check("" if same else "other numbers", "a cluster")
                    campaign.counts["runs"] += 1
                    n += 1
        finally:
            for process in (scheduler, *workers):
                process.kill()
                process.wait()


def _dask(folder: Path, role: str, *arguments: str) -> "subprocess.Popen[bytes]":
    program = f"from distributed.cli.dask_{role} import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments, "--no-dashboard"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _worker(folder: Path, address: str) -> "subprocess.Popen[bytes]":
    return _dask(folder, "worker", address, "--nthreads", "1", "--no-nanny")


def _address(folder: Path) -> str:
    file = folder / "scheduler.json"
    for _ in range(300):
        if file.exists() and file.read_text():
            return json.loads(file.read_text())["address"]
        time.sleep(0.1)
    raise RuntimeError("no Dask scheduler")
