"""Whether tiles and turns within a call of the loop gain anything: the same chains, scheduled in four ways.

    python benchmarks/scheduling.py ../shared/models/mnistvh_CD25.mat zoo/mnistDBM-500-1000.npz

now       tiles of at most 128 chains and one more than threads need; the tile that is most behind goes on
in order  the same tiles, each run to its end by the thread that took it
no spare  as many tiles for each thread, none more, each run to its end
one each  one tile for each thread, however large

Each is timed in turn, `--repeats` times; printed are medians of the time relative to `now`, and the spread of `now`.
"""

import argparse
import itertools
import time
from unittest import mock

import numpy as np

import meltpoint as mp
from meltpoint.annealing import loop
from meltpoint.annealing.loop import prepare_path
from meltpoint.annealing.schedule import as_betas
from meltpoint.estimators.ais import run_ais

ALL_CHAINS = (10, 64, 100, 300, 1000, 5000)


def spare_less(n_chains, threads, tile, at_once=1):
    return evenly(n_chains, min(n_chains, threads * -(-n_chains // (threads * tile))), at_once)


def one_each(n_chains, threads, _tile, at_once=1):
    return evenly(n_chains, min(n_chains, threads), at_once)


def evenly(n_chains, parts, at_once):
    inner = np.rint(np.linspace(0, n_chains, parts + 1)[1:-1] / at_once).astype(int) * at_once
    edges = np.unique([0, *inner[inner < n_chains].tolist(), n_chains]).tolist()
    return [slice(low, high) for low, high in itertools.pairwise(edges)]


def to_the_end(waiting, stop):
    """A thread's work without turns: what it has taken it finishes."""
    while not stop.is_set():
        try:
            *_, rest = waiting.get_nowait()
        except loop.Empty:
            return
        for _ in rest:
            if stop.is_set():
                return


WAYS = {
    "now": {},
    "in order": {"_work": to_the_end},
    "no spare": {"_work": to_the_end, "_cut": spare_less},
    "one each": {"_work": to_the_end, "_cut": one_each},
}


def seconds(way, prepared, chains, steps):
    with mock.patch.multiple(loop, **WAYS[way]) if WAYS[way] else mock.patch.object(loop, "TILE", loop.TILE):
        begun = time.perf_counter()
        found = run_ais(prepared, as_betas(steps), np.arange(chains), 1)
        return time.perf_counter() - begun, found.log_weights


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    small = mp.RBM(rng.normal(0, 0.1, (64, 32)), np.zeros(64), np.zeros(32))
    print("| model | chains | steps | now, s | spread | " + " | ".join(list(WAYS)[1:]) + " |")
    for model in [small, *map(mp.load, asked.models)]:
        prepared = prepare_path(model.path(mp.uniform()))
        taken = min(seconds("now", prepared, 512, 100)[0] for _ in range(2))
        for chains in ALL_CHAINS:
            steps = max(32, round(asked.seconds * 51_200 / taken / chains))
            found = {way: [] for way in WAYS}
            weights = set()
            for _ in range(asked.repeats):
                for way in WAYS:
                    took, log_weights = seconds(way, prepared, chains, steps)
                    found[way].append(took)
                    weights.add(log_weights.tobytes())
            assert len(weights) == 1, "the weights depend on how chains are scheduled"
            now = np.array(found["now"])
            ratios = [f"{np.median(np.array(found[way]) / now):.3f}" for way in list(WAYS)[1:]]
            spread = (np.quantile(now, 0.75) - np.quantile(now, 0.25)) / np.median(now)
            cells = [
                repr(model),
                f"{chains:,}",
                f"{steps:,}",
                f"{np.median(now):.3f}",
                f"{spread:.1%}",
                *ratios,
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
