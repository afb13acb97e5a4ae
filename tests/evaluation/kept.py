"""What the tests of runs share: a small evaluation, and a way to compare reports."""

import json
from functools import cache

import numpy as np

import meltpoint as mp

RNG = np.random.default_rng(5)
MODEL = mp.RBM(RNG.normal(0, 0.5, (24, 30)), RNG.normal(size=24), RNG.normal(size=30))
DEEP = mp.DBM(
    [RNG.normal(0, 0.5, shape) for shape in [(24, 10), (10, 6)]], [RNG.normal(size=n) for n in (24, 10, 6)]
)
STACK = mp.DBN(
    [(RNG.normal(0, 0.5, (24, 12)), RNG.normal(size=24), RNG.normal(size=12))],
    mp.RBM(RNG.normal(0, 0.5, (12, 25)), RNG.normal(size=12), RNG.normal(size=25)),
)
TEST = RNG.integers(0, 2, (60, 24))
TRAIN = RNG.integers(0, 2, (80, 24))
SETTINGS = {"steps": 30, "chains": 5, "ais_chains": 300, "examples": 50}


def evaluate(model=MODEL, **changes):
    """A small evaluation, of six tasks for AIS and six for RAISE."""
    return mp.evaluate(model, TEST, TRAIN, **(SETTINGS | changes))


@cache
def whole(model):
    """What is reported if nothing goes wrong, computed once in a process."""
    return plain(evaluate(model))


def plain(report):
    """Everything but the timing, to the last bit."""
    made = report.to_dict()
    del made["seconds"]
    per = report.per_example
    arrays = (report.ais_log_weights, per.log_weights, per.log_reverse_weights)
    return json.dumps([made, [array.tobytes().hex() for array in arrays]], allow_nan=False)
