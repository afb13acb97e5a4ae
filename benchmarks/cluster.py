"""A Dask cluster of two worker processes against two threads of one process, on the same two cores.

    python benchmarks/cluster.py            a job of about a minute, three rounds
    python benchmarks/cluster.py --calm     with Dask's settings as docs/runs.md recommends them
    python benchmarks/cluster.py --steps 1000 --rounds 1

The speed of a shared machine changes from minute to minute, so that two jobs one after the other compare minutes, not
jobs. Here both are begun at once and take turns of half a second: one is stopped while the other runs, and each has
a clock that runs only with it. The workers are new in every round, so that their start counts: importing, loading the
kernels, fetching the model. The machine must have nothing else to do. Unix only.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from threading import Lock, Thread

from cases import PAPER_MODEL, SHARED

ASKED = 1.15
WORKERS = 2
TURN = 0.5  # seconds
CALM = {"DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms"}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--steps", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--calm", action="store_true", help="Dask with fewer ticks")
    options.add_argument("--job", choices=["threads", "cluster"], help=argparse.SUPPRESS)
    asked = options.parse_args()
    os.environ.setdefault("MELTPOINT_DATA", str(SHARED / "data"))
    if asked.job:
        _job(asked.job, asked.steps)
        return
    if asked.calm:
        os.environ.update(CALM)
    _compile()
    ratios = []
    for k in range(asked.rounds):
        threads, cluster = (Job(name, asked.steps) for name in ("threads", "cluster"))
        take_turns([threads, cluster])
        ratios.append(cluster.seconds / threads.seconds)
        same = "the same bits" if threads.result == cluster.result else "NOT THE SAME BITS"
        print(
            f"round {k + 1}: {WORKERS} threads {threads.seconds:.1f} s, {WORKERS} workers "
            f"{cluster.seconds:.1f} s: {ratios[-1]:.3f} x, {same}",
            flush=True,
        )
    print(f"median {statistics.median(ratios):.3f} x (asked for: at most {ASKED})")


class Job:
    """A job in processes of its own, with a clock that stands still while it is stopped."""

    def __init__(self, name: str, steps: int) -> None:
        command = [sys.executable, __file__, "--job", name, "--steps", str(steps)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        self.result = ""
        self._lock = Lock()
        self._clock = 0.0
        self._since: float | None = None
        self._marks: dict[str, float] = {}

    def get_ready(self) -> None:
        """Let it come to where the job begins, and stop it there."""
        assert self.process.stdout
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit("a job did not begin")
        Thread(target=self._listen, daemon=True).start()
        self._signal(signal.SIGSTOP)

    @property
    def over(self) -> bool:
        return "end" in self._marks

    @property
    def seconds(self) -> float:
        return self._marks["end"] - self._marks["begin"]

    def turn(self, seconds: float) -> None:
        """Let it run for a while, or to its end."""
        assert self.process.stdin
        with self._lock:
            self._since = time.perf_counter()
        self._signal(signal.SIGCONT)
        if not self._clock:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and not self.over:
            time.sleep(0.01)
        if not self.over:
            self._signal(signal.SIGSTOP)
        with self._lock:
            self._clock = self._now()
            self._since = None

    def kill(self) -> None:
        """End it, stopped or not, if it has not ended."""
        if self.process.poll() is None:
            self._signal(signal.SIGKILL)

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            mark, _, rest = line.strip().partition(" ")
            with self._lock:
                self._marks[mark] = self._now()
            self.result = rest

    def _now(self) -> float:
        return self._clock + (0.0 if self._since is None else time.perf_counter() - self._since)

    def _signal(self, what: signal.Signals) -> None:
        os.killpg(self.process.pid, what)


def take_turns(jobs: list[Job]) -> None:
    """Run jobs, one at a time, to the end of all."""
    try:
        for job in jobs:
            job.get_ready()
        while not all(job.over for job in jobs):
            for job in jobs:
                if job.process.poll() is not None and not job.over:
                    raise SystemExit("a job ended before its work was done")
                if not job.over:
                    job.turn(TURN)
        for job in jobs:
            job.process.wait()
    finally:
        for job in jobs:
            job.kill()


def _compile() -> None:
    subprocess.run([sys.executable, __file__, "--job", "threads", "--steps", "10"], input="go\n", text=True,
                   stdout=subprocess.DEVNULL, check=True)  # fmt: skip


def _job(name: str, steps: int) -> None:
    """What a job's process does: get ready, wait for a line, evaluate."""
    import meltpoint as mp
    from meltpoint.fingerprint import fingerprint
    from meltpoint.runs.dask import dask_cluster

    model, data = mp.load(PAPER_MODEL), mp.datasets.load("mnist")
    settings = {"steps": steps, "schedule": "linear", "threads": WORKERS}

    def evaluate(**how: object) -> None:
        print("ready", flush=True)
        input()
        print("begin", flush=True)
        report = mp.evaluate(model, data.test, data.train, **settings, **how)
        weights = {"ais": report.ais_log_weights, "raise": report.per_example.log_weights}
        print("end", fingerprint(weights), flush=True)

    if name == "threads":
        evaluate()
        return
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0") as dask,
        dask_cluster(dask.scheduler_address) as executor,
    ):
        evaluate(executor=executor)


if __name__ == "__main__":
    main()
