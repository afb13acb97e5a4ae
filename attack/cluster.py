"""A Dask cluster whose workers, scheduler and users die, and one that computes for a long time."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

import meltpoint as mp
from attack.campaign import Campaign
from attack.command import Ended, Process, run
from attack.faults import fail_next
from attack.kills import compare, kill, reference
from attack.others import check_growth, used_by
from attack.scenarios import EVALUATIONS, Scenario

_ACTIONS = (*["kill a worker"] * 4, "kill all")
_LATEST = 1.0  # seconds: a command that nothing happens to takes about as long
_FAULTS_PER_KILL = 5
_WARM = 20  # evaluations before the first look at what a cluster uses
_PAUSE = 5.0  # seconds between evaluations of the soak, so that it takes a small part of the processors


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


@contextmanager
def _cluster(campaign: Campaign) -> Iterator[Cluster]:
    with campaign.folder() as folder:
        cluster = Cluster(folder)
        try:
            yield cluster
        finally:
            cluster.kill()


def attack(campaign: Campaign) -> Iterator[None]:
    """Kill parts of a cluster: the same numbers, or exit code 3; and the next call ends well."""
    expected = reference(campaign, EVALUATIONS[0])
    if expected is None:
        return
    with _cluster(campaign) as cluster:
        for number in campaign.tries():
            action = _ACTIONS[number % len(_ACTIONS)]
            with campaign.folder() as trial:
                what = f"a cluster, {action}"
                ended = _disturbed(campaign, cluster, action, trial)
                if campaign.check(ended.complaint(0, 1, 3), what) and ended.code in (0, 1):
                    campaign.same(EVALUATIONS[0].result(trial, ended), expected[0], what)
                compare(campaign, _scenario(cluster, 60), trial, expected[0], f"{what}, next call")
            campaign.count("disturbances", action)
            yield


def attack_command(campaign: Campaign) -> Iterator[None]:
    """Kill the command that uses a cluster, and let every call that it makes on files fail once."""
    with _cluster(campaign) as cluster:
        scenario, faults = _scenario(cluster, 60), True
        with campaign.folder() as folder:
            # Workers import and compile with their first tasks: moments to kill at are drawn from the time without.
            run(scenario.arguments, folder)
        for _ in campaign.tries():
            kill(campaign, scenario)
            yield
            for _ in range(_FAULTS_PER_KILL if faults else 0):
                faults = faults and fail_next(campaign, scenario)
                yield


def _scenario(cluster: Cluster, patience: int) -> Scenario:
    options = ("--cluster", cluster.address, "--patience", str(patience))
    return replace(EVALUATIONS[0], name="evaluate --cluster", arguments=(*EVALUATIONS[0].arguments, *options))


def _disturbed(campaign: Campaign, cluster: Cluster, action: str, trial: Path) -> Ended:
    """How the command ends while something is done to the cluster."""
    process = Process(_scenario(cluster, 20).arguments, trial)
    time.sleep(campaign.random.uniform(0, _LATEST))
    if action == "kill a worker":
        cluster.kill_worker(campaign.random.randrange(2))
        return process.wait()
    cluster.kill()
    ended = process.wait()
    cluster.start()
    return ended


def attack_soak(campaign: Campaign) -> Iterator[None]:
    """Evaluate on one cluster until the time is over: what it uses must not grow, nor what its user does."""
    seconds = campaign.seconds
    with _cluster(campaign) as cluster, campaign.folder() as folder:
        begun = time.monotonic()
        ended = Process(lambda: _soak(cluster, seconds), folder).wait(10 * seconds + 60)
        if campaign.check(ended.complaint(0), "soak of a cluster"):
            found = json.loads(ended.out)
            campaign.count("evaluations", n=found["evaluations"])
            names = ("scheduler", "worker 1", "worker 2", "user")
            for name, first, last in zip(names, found["first"], found["last"], strict=True):
                check_growth(campaign, name, first, last)
        campaign.count("seconds", n=round(time.monotonic() - begun))
    yield


def _soak(cluster: Cluster, seconds: float) -> None:
    from distributed import Client

    until = time.monotonic() + seconds
    data, model = np.load("data.npy"), mp.load("rbm.npz")
    pids = [*cluster.pids, os.getpid()]
    first, n = None, 0
    with Client(cluster.address, timeout=60) as client:
        executor = client.get_executor()
        while time.monotonic() < until:
            begun = time.monotonic()
            mp.evaluate(model, data, data, steps=30, chains=2, examples=10, seed=n, executor=executor)
            n += 1
            if n == _WARM:
                first = [used_by(pid) for pid in pids]
            pause = min(_PAUSE, 10 * (time.monotonic() - begun))
            time.sleep(max(0.0, min(pause, until - time.monotonic())))
        last = [used_by(pid) for pid in pids]
    print(json.dumps({"evaluations": n, "first": first or last, "last": last}))
