"""The numbers of small runs with `gap=`: the sizes that were decided on, and what they found.

Decisions are by counts and not by the clock while there is time, so that the same seed gives the same stages. A change
of the planner may change them, another one may not. After it they are written anew, to gap_pins.json, by

    PYTHONPATH=tests .venv/bin/python -m evaluation.gap_pins
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

import meltpoint as mp
from evaluation.kept import DEEP, MODEL, TEST, TRAIN
from meltpoint.results.report import Report

FILE = Path(__file__).with_suffix(".json")
_RNG = np.random.default_rng(1)
_WEIGHTS, _TOP, _BIAS = _RNG.normal(0, 0.03, (24, 12)), _RNG.normal(0, 0.1, (12, 25)), _RNG.normal(size=12)
# For 0.09 nats. To 0.07 no stage is predicted to come, and then the next one is as large as there is time for: such a
# decision is the clock's and cannot be pinned.
STACK = mp.DBN(
    [(_WEIGHTS, _RNG.normal(size=24), _BIAS + _TOP.sum(1) / 2)],
    mp.RBM(_TOP, _BIAS, np.zeros(25)),
)
# Its weights are so large that a stage is too small by little, and grows.
STRONG = mp.RBM(_RNG.normal(0, 1, (24, 10)), _RNG.normal(size=24), _RNG.normal(size=10))

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "rbm, data": (MODEL, {"base": "data", "gap": 0.02}),
    "rbm, uniform": (MODEL, {"base": "uniform", "gap": 0.05}),
    "dbm, data": (DEEP, {"base": "data", "gap": 0.02}),
    "dbm, uniform": (DEEP, {"base": "uniform", "gap": 0.02}),
    "dbn, data": (STACK, {"base": "data", "gap": 0.09}),
    "dbn, uniform": (STACK, {"base": "uniform", "gap": 0.09}),
    "strong rbm, base chosen": (STRONG, {"gap": 0.02}),
}


def run(name: str, **options: Any) -> Report:
    """The report of a case, with an hour for what takes a second: no clock matters."""
    model, settings = CASES[name]
    return mp.evaluate(model, TEST, TRAIN, **({"budget": "1h", "seed": 3} | settings | options))


def numbers(report: Report) -> dict[str, Any]:
    """What is pinned of a report: what was decided, and what was found."""
    sides = report.conservative, report.optimistic, report.gap
    return {
        "verdict": report.verdict.reason,
        "base": report.settings.base,
        "sizes": [[stage.steps, stage.examples, stage.chains, stage.ais_chains] for stage in report.stages],
        "stages": [[stage.conservative, stage.optimistic, stage.half_width] for stage in report.stages],
        "log_z": [report.log_z.value, report.log_z.stderr],
        "estimates": [[side.value, side.stderr] for side in sides],
        "between": list(report.between),
    }


if __name__ == "__main__":
    import sys

    pins = json.loads(FILE.read_text()) if FILE.exists() else {}
    pins |= {name: numbers(run(name)) for name in sys.argv[1:] or CASES}
    FILE.write_text(json.dumps({name: pins[name] for name in CASES}, indent=1) + "\n")
