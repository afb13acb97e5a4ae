"""What is promised of training: the same machine and library give the same model, other ones a model as good.

Dense products are the matrix library's, whose last bits differ between processors, so the bits of a model are promised
on one machine only. Models are trained in processes of their own, one of them with another processor's products.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

import meltpoint as mp
from meltpoint.datasets import load

NAMES = ("rbm cd", "rbm pcd", "rbm grey", "dbm", "dbn")
AS_GOOD = 2.0  # nats of mean held-out log-probability: another seed's model differs by as much
OTHER_PROCESSOR = "Prescott"


def parameters(model):
    return list(model.arrays().values())


def train(name):
    digits = load("digits")
    bits, grey = digits.train[:500], digits.grey_train[:500]
    match name:
        case "rbm cd":
            return mp.train_rbm(
                bits, 80, method="cd", k=2, epochs=3, batch=50, momentum=0.5, centred=False, seed=1
            )
        case "rbm pcd":
            return mp.train_rbm(bits, 20, epochs=4, batch=70, chains=33, schedule="constant", seed=1)
        case "rbm grey":
            return mp.train_rbm(grey, 80, epochs=3, averaged=0.0, weight_decay=0.01, seed=1)
        case "dbm":
            return mp.train_dbm(bits, (70, 20), epochs=[2, 2, 3], batch=50, sweeps=3, k=2, seed=1)
        case _:
            return mp.train_dbn(grey, (20, 15), epochs=2, batch=50, method=["cd", "pcd"], seed=1)


def bits_and_quality():
    """For each model its parameters' bits, and its mean held-out log-probability."""
    held_out = load("digits").test[:50]
    found = {}
    for name in NAMES:
        model = train(name)
        log_z = mp.ais_log_z(model, steps=1000, chains=50, seed=1, threads=1).value
        bits = [np.ascontiguousarray(array).tobytes().hex() for array in parameters(model)]
        found[name] = bits, float(np.mean(model.log_f(held_out)) - log_z)
    return found


@cache
def trained(processor, _run):
    """The same in a new process, with the matrix products of a processor; "" is this one."""
    here = Path(__file__).parents[1]
    path = os.pathsep.join([str(here), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {"OPENBLAS_CORETYPE": processor} if processor else {}
    ran = subprocess.run(
        [sys.executable, "-m", "training.repeats"],
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(bits_and_quality()))
