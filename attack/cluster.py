"""A Dask cluster whose workers, scheduler and users die, and one that computes for a long time."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

import meltpoint as mp
from attack.campaign import Campaign, leftovers
from attack.command import Ended, Process, run
from attack.faults import OPERATIONS, Disk, Fault
from attack.kills import reference
from attack.others import check_growth, used_by
from attack.scenarios import EVALUATIONS

_ACTIONS = (
    "nothing",
    "kill a worker",
    "kill a worker",
    "kill the command",
    "kill the command",
    "fail",
    "kill all",
)
_WARM = 5  # evaluations before the first look at what a cluster uses


class Cluster:
    """A scheduler and two workers, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self) -> None:
        """Start all of it, at a new address."""
        file = self._folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self._processes = [self._dask("scheduler", "--port", "0", "--scheduler-file", file.name)]
        for _ in range(600):
            with suppress(OSError, ValueError):
                self.address = json.loads(file.read_text())["address"]
                break
            time.sleep(0.1)
        else:
            raise RuntimeError("no Dask scheduler")
        self._processes += [self._worker(), self._worker()]

    def kill_worker(self, which: int) -> None:
        """Kill a worker, and start another in its place."""
        self._kill(self._processes[1 + which])
        self._processes[1 + which] = self._worker()

    def kill(self) -> None:
        """Kill all of it."""
        for process in self._processes:
            self._kill(process)

    @property
    def pids(self) -> list[int]:
        """Process numbers of the scheduler and of the workers."""
        return [process.pid for process in self._processes]

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        process.kill()
        process.wait()

    def _worker(self) -> "subprocess.Popen[bytes]":
        return self._dask("worker", self.address, "--nthreads", "1", "--no-nanny")

    def _dask(self, role: str, *arguments: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"from distributed.cli.dask_{role} import main; main()",
                *arguments,
                "--no-dashboard",
            ],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def attack(campaign: Campaign) -> None:
    """Kill parts of a cluster, or its user: the same numbers, or exit code 3; and the next call ends well."""
    scenario = EVALUATIONS[0]
    expected = reference(campaign, scenario)
    if expected is None:
        return
    with campaign.folder() as folder:
        cluster = Cluster(folder)
        try:
            while campaign.going_on:
                with campaign.folder() as trial:
                    action = campaign.random.choice(_ACTIONS)
                    ended = _disturbed(campaign, cluster, action, trial)
                    campaign.counts[action] += 1
                    killed = action == "kill the command" and ended.code == -9
                    what = f"a cluster, {action}"
                    well = campaign.check(ended.complaint(*((-9,) if killed else (0, 1, 3))), what)
                    if well and ended.code in (0, 1):
                        same = scenario.result(trial, ended) == expected[0]
                        campaign.check("" if same else "other numbers", what)
                    ended = run(_arguments(cluster, 60), trial)
                    what += ", next call"
                    if campaign.check(ended.complaint(0, 1) or leftovers(trial), what):
                        same = scenario.result(trial, ended) == expected[0]
                        campaign.check("" if same else "other numbers", what)
        finally:
            cluster.kill()


def _arguments(cluster: Cluster, patience: int) -> tuple[str, ...]:
    return (*EVALUATIONS[0].arguments, "--cluster", cluster.address, "--patience", str(patience))


def _disturbed(campaign: Campaign, cluster: Cluster, action: str, trial: Path) -> Ended:
    """How the command ends while something is done to the cluster or to it."""
    rng, disk = campaign.random, None
    if action == "fail":
        disk = Disk(trial, Fault(rng.choice(OPERATIONS), rng.randint(1, 40), 28, rng.random() < 0.3))
    process = Process(_arguments(cluster, 20), trial, disk)
    if action == "kill the command":
        process.kill_after(rng.uniform(0, 4))
    elif action == "kill a worker":
        time.sleep(rng.uniform(0, 4))
        cluster.kill_worker(rng.randrange(2))
    elif action == "kill all":
        time.sleep(rng.uniform(0, 4))
        cluster.kill()
        ended = process.wait()
        cluster.start()
        return ended
    return process.wait()


def attack_soak(campaign: Campaign) -> None:
    """Evaluate on one cluster until the time is over: what it uses must not grow, nor what its user does."""
    with campaign.folder() as folder:
        cluster = Cluster(folder)
        try:
            process = Process(lambda: _soak(cluster, campaign.seconds), folder)
            ended = process.wait(10 * campaign.seconds + 60)
        finally:
            cluster.kill()
        if campaign.check(ended.complaint(0), "soak of a cluster"):
            found = json.loads(ended.out)
            campaign.counts["evaluations"] += found["evaluations"]
            names = ("scheduler", "worker 1", "worker 2", "user")
            for name, first, last in zip(names, found["first"], found["last"], strict=True):
                check_growth(campaign, f"soak of a cluster, {name}", first, last)


def _soak(cluster: Cluster, seconds: float) -> None:
    from distributed import Client

    until = time.monotonic() + seconds
    data, model = np.load("data.npy"), mp.load("rbm.npz")
    pids = [*cluster.pids, os.getpid()]
    first, n = None, 0
    with Client(cluster.address, timeout=60) as client:
        executor = client.get_executor()
        while time.monotonic() < until:
            mp.evaluate(model, data, data, steps=30, chains=2, examples=10, seed=n, executor=executor)
            n += 1
            if n == _WARM:
                first = [used_by(pid) for pid in pids]
        last = [used_by(pid) for pid in pids]
    print(json.dumps({"evaluations": n, "first": first or last, "last": last}))
