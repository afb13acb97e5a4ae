"""A fixed set of small reports, and its bits as JSON: python -m machines.reports THREADS [FOLDER].

With a folder, evaluations are also interrupted and continued there, and given to worker processes.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import meltpoint as mp
from evaluation.kept import plain
from meltpoint.runs.workers import processes

RNG = np.random.default_rng(3)
N, SITES = 12, 9
BITS, REALS, STATES, SPINS = (
    RNG.integers(0, 2, (30, N)),
    RNG.normal(size=(30, 5)),
    RNG.integers(0, 3, (30, SITES)),
    2 * RNG.integers(0, 2, (30, SITES)) - 1,
)
HOW: dict[str, Any] = {"steps": 12, "chains": 3, "ais_chains": 40, "examples": 8, "exact": False, "seed": 4}


def _weights(*shape: int) -> np.ndarray:
    return RNG.normal(0, 0.7, shape)


def _symmetric(n: int) -> np.ndarray:
    upper = np.triu(_weights(n, n) * (RNG.random((n, n)) < 0.5), 1)
    return upper + upper.T


def _ring(n: int) -> list[tuple[tuple[int, int], np.ndarray]]:
    return [((i, (i + 1) % n), _weights(3, 3)) for i in range(n)]


# Log f of the deep ones is sampled: they have more hidden units than are enumerated.
MODELS: dict[str, tuple[Any, np.ndarray]] = {
    "RBM": (mp.RBM(_weights(N, 40), _weights(N), _weights(40)), BITS),
    "DBM": (mp.DBM([_weights(N, 13), _weights(13, 11)], [_weights(n) for n in (N, 13, 11)]), BITS),
    "DBN": (
        mp.DBN(
            [(_weights(N, 11), _weights(N), _weights(11))], mp.RBM(_weights(11, 7), _weights(11), _weights(7))
        ),
        BITS,
    ),
    "deep DBN": (
        mp.DBN(
            [(_weights(N, 8), _weights(N), _weights(8)), (_weights(8, 6), _weights(8), _weights(6))],
            mp.RBM(_weights(6, 5), _weights(6), _weights(5)),
        ),
        BITS,
    ),
    "Gaussian RBM": (mp.RBM(_weights(5, 6), _weights(5), _weights(6), visible="gaussian"), REALS),
    "Potts RBM": (mp.RBM(_weights(SITES, 3, 6), _weights(SITES, 3), _weights(6), visible="potts"), STATES),
    "Ising": (mp.Ising(_symmetric(SITES), _weights(SITES)), SPINS),
    "Ising with hidden sites": (
        mp.Ising(_symmetric(SITES + 4), _weights(SITES + 4), hidden=[9, 10, 11, 12]),
        SPINS,
    ),
    "Potts": (mp.Potts(dict(_ring(SITES)), _weights(SITES, 3)), STATES),
    "factor graph": (mp.FactorGraph([3] * SITES, _ring(SITES)), STATES),
}


def evaluate(name: str, **options: Any) -> mp.Report:
    """The evaluation of a model."""
    model, data = MODELS[name]
    return mp.evaluate(model, data[:10], data[10:], **HOW, **options)


def without_time(made: Any) -> Any:
    """A record of a result without what the clock has written into it."""
    if isinstance(made, dict):
        return {key: without_time(each) for key, each in made.items() if "seconds" not in key}
    return [without_time(each) for each in made] if isinstance(made, list | tuple) else made


def interrupted(name: str, folder: Path, threads: int) -> mp.Report:
    """The evaluation, stopped when half of its RAISE chains are there, and continued."""

    def stop(task: str, done: float, total: float) -> None:
        if "RAISE" in task and done > total / 2:
            raise KeyboardInterrupt

    evaluate(name, run=folder, threads=threads, progress=stop)
    return evaluate(name, run=folder, threads=threads)


def all_bits(threads: int, folder: Path | None) -> dict[str, Any]:
    """The bits of each report by its name."""
    found = {f"evaluate {name}": plain(evaluate(name, threads=threads)) for name in MODELS}
    for name in ("DBM", "Ising"):
        bracket = mp.log_z(MODELS[name][0], steps=20, chains=40, exact=False, threads=threads)
        found[f"log-z {name}"] = without_time(bracket.to_dict())
    of_bits = {name: model for name, (model, data) in MODELS.items() if data is BITS}
    how = {key: value for key, value in HOW.items() if key != "exact"}
    compared = mp.compare(of_bits, BITS[:10], BITS[10:], threads=threads, **how)
    found["compare"] = without_time(compared.to_dict())
    if folder is not None:
        for name in ("DBM", "DBN", "deep DBN", "Ising"):
            found[f"interrupted {name}"] = plain(interrupted(name, folder / name, threads))
        with processes(2) as workers:
            for name in ("DBM", "DBN"):
                found[f"workers {name}"] = plain(evaluate(name, executor=workers))
    return found


if __name__ == "__main__":
    given = sys.argv[1:]
    bits = all_bits(int(given[0]), Path(given[1]) if len(given) > 1 else None)
    sys.stdout.write(json.dumps(bits))
