"""Several processes at one folder, and one process for a long time."""

import gc
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import meltpoint as mp
from attack.campaign import Campaign
from attack.command import Process
from attack.kills import compare, reference
from attack.scenarios import EVALUATIONS, PAPER, SEVERAL, TRAININGS

# What the allocator keeps, a connection that was just opened, threads of a pool that starts them one by one.
_GROWTH = {"memory": 64 << 20, "files": 4, "threads": 4}
_WARM = 40  # evaluations before the first look
_PAUSE = 19  # times the processor time of an evaluation, so that it takes a twentieth of a core
_RACING = (EVALUATIONS[0], TRAININGS[0], SEVERAL[0], PAPER[0])


def attack_concurrency(campaign: Campaign) -> Iterator[None]:
    """Start the same command several times at once: one computes, the others say so, and the numbers are the same."""
    for number in campaign.tries():
        scenario = _RACING[number % len(_RACING)]
        if (found := reference(campaign, scenario)) is not None:
            with campaign.folder() as folder:
                processes = []
                for _ in range(3):
                    processes.append(Process(scenario.arguments, folder))
                    time.sleep(campaign.random.uniform(0, 0.05))
                for process in processes:
                    campaign.check(process.wait().complaint(0, 1, 2), f"{scenario.name}, three at once")
                compare(campaign, scenario, folder, found[0], f"{scenario.name}, after three at once")
        campaign.count("races", scenario.name)
        yield


def attack_soak(campaign: Campaign) -> Iterator[None]:
    """Evaluate in one process until the time is over: memory, open files and threads must not grow."""
    with campaign.folder() as folder:
        begun, seconds = time.monotonic(), campaign.seconds
        ended = Process(lambda: _soak(seconds), folder).wait(10 * seconds + 60)
        if campaign.check(ended.complaint(0), "soak"):
            found = json.loads(ended.out)
            campaign.count("evaluations", n=found["evaluations"])
            check_growth(campaign, "one process", found["first"], found["last"])
        campaign.count("seconds", n=round(time.monotonic() - begun))
    yield


def _soak(seconds: float) -> None:
    until = time.monotonic() + seconds
    data = np.load("data.npy")
    models = [mp.load(f"{kind}.npz") for kind in ("rbm", "dbm", "dbn", "ising")]
    first, n = None, 0
    while time.monotonic() < until:
        begun = time.process_time()
        mp.evaluate(models[n % 4], data, data, steps=30, chains=2, examples=10, seed=n, run=f"soak/{n}")
        shutil.rmtree(f"soak/{n}")
        n += 1
        if n == _WARM:
            first = used_by(os.getpid())
        time.sleep(max(0.0, min(_PAUSE * (time.process_time() - begun), until - time.monotonic())))
    last = used_by(os.getpid())
    print(json.dumps({"evaluations": n, "first": first or last, "last": last}))


def used_by(pid: int) -> dict[str, int]:
    """Memory in bytes, open files and threads of a process."""
    gc.collect()
    process = Path(f"/proc/{pid}")
    return {
        "memory": int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        "files": len(os.listdir(process / "fd")),
        "threads": len(os.listdir(process / "task")),
    }


def check_growth(campaign: Campaign, what: str, first: dict[str, int], last: dict[str, int]) -> None:
    """Complain if a process uses more in the end than after its first evaluations."""
    for name, slack in _GROWTH.items():
        grew = f"{name} grew from {first[name]:,} to {last[name]:,}"
        campaign.check(grew if last[name] > first[name] + slack else "", what)
    shown = [
        f"{name} {first[name] >> 20} to {last[name] >> 20} MB"
        if name == "memory"
        else f"{name} {first[name]} to {last[name]}"
        for name in _GROWTH
    ]
    campaign.ledger.note(campaign.name, f"{what}: {', '.join(shown)}")
