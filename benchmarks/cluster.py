"""A Dask cluster of two worker processes against two threads of one process, on the same two cores.

    python benchmarks/cluster.py            a job of about a minute, three rounds
    python benchmarks/cluster.py --steps 1000 --rounds 1

The workers are new in every round, so that their start counts: importing, loading the kernels, fetching the model.
The machine must have nothing else to do.
"""

import argparse
import os
import statistics
import time

import numpy as np
from cases import PAPER_MODEL, SHARED

import meltpoint as mp
from meltpoint.evaluation.workers import cluster

ASKED = 1.15
WORKERS = 2


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--steps", type=int, default=20_000)
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()

    from distributed import LocalCluster

    os.environ.setdefault("MELTPOINT_DATA", str(SHARED / "data"))
    model, data = mp.load(PAPER_MODEL), mp.datasets.load("mnist")
    job = {"steps": asked.steps, "schedule": "linear", "threads": WORKERS}
    mp.evaluate(model, data.test, data.train, **(job | {"steps": 10}))  # compiles the kernels
    ratios = []
    for k in range(asked.rounds):
        threaded, seconds = timed(lambda: mp.evaluate(model, data.test, data.train, **job))
        with (
            LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address="127.0.0.1:0") as dask,
            cluster(dask.scheduler_address) as executor,
        ):
            spread, longer = timed(
                lambda: mp.evaluate(model, data.test, data.train, executor=executor, **job)
            )
        same = np.array_equal(threaded.ais_log_weights, spread.ais_log_weights) and np.array_equal(
            threaded.per_example.log_weights, spread.per_example.log_weights
        )
        ratios.append(longer / seconds)
        print(
            f"round {k + 1}: {WORKERS} threads {seconds:.1f} s, {WORKERS} workers {longer:.1f} s: "
            f"{ratios[-1]:.3f} x, {'the same bits' if same else 'NOT THE SAME BITS'}"
        )
    print(f"median {statistics.median(ratios):.3f} x (asked for: at most {ASKED})")


def timed(call):
    begun = time.perf_counter()
    return call(), time.perf_counter() - begun


if __name__ == "__main__":
    main()
