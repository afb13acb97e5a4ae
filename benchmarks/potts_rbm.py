"""A Potts RBM of 112 sites, 21 states and 100 hidden units: chain-steps per second beside `rbms`, one thread each.

Both anneal the same number of chains through the same number of steps, in turn. meltpoint is asked to make five times
as many chain-steps per second.

    python benchmarks/potts_rbm.py --python .venv-bench/bin/python     # an environment with torch and rbms 0.5.0
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

SITES, STATES, HIDDEN = 112, 21, 100
ASKED = 5.0


def parameters() -> dict[str, np.ndarray]:
    """Weights (site, state, hidden), biases (site, state) and (hidden,), about as large as after training."""
    rng = np.random.default_rng(0)
    return {
        "weights": rng.normal(0, 0.1, (SITES, STATES, HIDDEN)).astype(np.float32),
        "visible_bias": rng.normal(0, 1, (SITES, STATES)).astype(np.float32),
        "hidden_bias": rng.normal(-1, 0.1, HIDDEN).astype(np.float32),
    }


def competitor(file: str, chains: int, steps: int) -> None:
    """Anneal with `rbms` once for every line on stdin, and answer with seconds and log Z."""
    import torch  # pyright: ignore[reportMissingImports]
    from rbms.partition_function.ais import (  # pyright: ignore[reportMissingImports]
        compute_partition_function_ais,
    )
    from rbms.potts_bernoulli.classes import PBRBM  # pyright: ignore[reportMissingImports]

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the library prints must not be taken for an answer
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    with np.load(file) as given:
        model = PBRBM(*(torch.from_numpy(given[name]) for name in parameters()))
    compute_partition_function_ais(num_chains=chains, num_beta=3, params=model)
    print(json.dumps({"ready": True}), file=answers)
    for _ in sys.stdin:
        begun = time.perf_counter()
        log_z = float(compute_partition_function_ais(num_chains=chains, num_beta=steps + 1, params=model))
        print(json.dumps({"seconds": time.perf_counter() - begun, "log_z": log_z}), file=answers)


def main() -> None:
    """Print the chain-steps per second of both, and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", default=".venv-bench/bin/python", help="of an environment with rbms 0.5.0"
    )
    parser.add_argument("--chains", type=int, default=512)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--competitor", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.competitor:
        competitor(given.competitor, given.chains, given.steps)
        return

    import meltpoint as mp

    arrays = parameters()
    model = mp.RBM(*(arrays[name].astype(np.float64) for name in arrays), visible="potts")
    with TemporaryDirectory() as folder:
        file = Path(folder, "model.npz")
        np.savez(file, allow_pickle=False, **arrays)
        sizes = ["--chains", str(given.chains), "--steps", str(given.steps)]
        other = subprocess.Popen(
            [given.python, __file__, "--competitor", str(file), *sizes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdout.readline()
        mp.ais_log_z(model, steps=2, chains=4, threads=1)  # compiles
        ours, theirs = [], []
        for number in range(given.rounds):
            begun = time.perf_counter()
            # The base of rbms: the model without weights.
            base = mp.Base("biases", (model.visible_bias, model.hidden_bias))
            log_z = mp.ais_log_z(
                model, base=base, steps=given.steps, chains=given.chains, seed=number, threads=1
            )
            ours.append(time.perf_counter() - begun)
            other.stdin.write("run\n")
            other.stdin.flush()
            answer = json.loads(other.stdout.readline())
            theirs.append(answer["seconds"])
            print(f"round {number + 1}: log Z {log_z}, rbms {answer['log_z']:.2f}", flush=True)
        other.communicate()
    chain_steps = given.chains * given.steps
    for name, seconds in (("meltpoint", ours), ("rbms", theirs)):
        print(f"{name:10} {chain_steps / median(seconds):10,.0f} chain-steps per second")
    ratio = median(b / a for a, b in zip(ours, theirs, strict=True))
    print(f"ratio {ratio:.1f} (asked: {ASKED:g})")


if __name__ == "__main__":
    main()
