"""Several processes at one folder, and one process for a long time."""

import gc
import json
import os
import time
from pathlib import Path

import numpy as np

import meltpoint as mp
from attack.campaign import Campaign, leftovers
from attack.command import Process, run
from attack.kills import reference
from attack.scenarios import EVALUATIONS, PAPER, SEVERAL, TRAININGS

# What the allocator keeps, a connection that was just opened, threads of a pool that starts them one by one.
_GROWTH = {"memory": 64 << 20, "files": 4, "threads": 4}
_WARM = 40  # evaluations before the first look


def attack_concurrency(campaign: Campaign) -> None:
    """Start the same command several times at once: one computes, the others say so, and the numbers are the same."""
    known = {}
    while campaign.going_on:
        for scenario in (EVALUATIONS[0], TRAININGS[0], SEVERAL[0], PAPER[0]):
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
        ended = Process(lambda: _soak(campaign.seconds), folder).wait(10 * campaign.seconds + 60)
        if campaign.check(ended.complaint(0), "soak"):
            found = json.loads(ended.out)
            campaign.counts["evaluations"] += found["evaluations"]
            check_growth(campaign, "soak", found["first"], found["last"])


def _soak(seconds: float) -> None:
    until = time.monotonic() + seconds
    data = np.load("data.npy")
    models = [mp.load(f"{kind}.npz") for kind in ("rbm", "dbm", "dbn", "ising")]
    first, n = None, 0
    while time.monotonic() < until:
        mp.evaluate(
            models[n % 4], data, data, steps=30, chains=2, examples=10, seed=n, run=f"soak/{n % 50}-{n}"
        )
        n += 1
        if n == _WARM:
            first = used_by(os.getpid())
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
