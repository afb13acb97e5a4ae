"""The numbers that seeds give for tiny Bernoulli models of each kind: what a change of the core must not change."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import meltpoint as mp
from meltpoint.models import dbm, dbn
from oracle.driving import models
from oracle.tables import all_states

MODELS = {
    "rbm": models.rbm(101, 7, 5, scale=0.7),
    "wide rbm": models.rbm(102, 70, 40, scale=0.3),
    "dbm": models.dbm(103, [5, 4, 3], scale=0.7),
    "deep dbm": models.dbm(104, [4, 3, 3, 2], scale=0.7),
    "one-layer dbm": models.dbm(105, [5, 4], scale=0.7),
    "dbn": models.dbn(106, [5, 4, 3], scale=0.7),
    "deep dbn": models.dbn(107, [4, 5, 3, 2], scale=0.7),
}
PRECISIONS = ("mixed", "float32", "float64")


def _train(model: Any) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 2, (40, model.n_visible), np.uint8)


def _examples(model: Any) -> np.ndarray:
    return all_states(model.n_visible)[:6] if model.n_visible < 10 else _train(model)[:6]


def _annealing(model: Any, precision: Any) -> dict[str, np.ndarray]:
    base = mp.data_rates(_train(model), model)
    options: dict[str, Any] = {"base": base, "precision": precision, "threads": 1}
    return {
        "ais": mp.ais_log_z(model, steps=20, chains=5, seed=11, **options).log_weights,
        "raise": mp.raise_log_prob(
            model, _examples(model), steps=20, chains=2, seed=12, **options
        ).log_weights,
        "samples": mp.sample_annealing_model(model, 4, steps=20, seed=13, **options),
    }


def _sampled_log_f(model: Any, x: np.ndarray) -> np.ndarray:
    with mock.patch.object(dbm, "ENUMERATED", 0), mock.patch.object(dbn, "ENUMERATED", 0):
        return model.log_f(x)


def _others(model: Any) -> dict[str, np.ndarray]:
    schedule = mp.friction_schedule(model, _train(model), seed=3, threads=1)
    free = mp.friction_schedule(model, seed=4, threads=1)
    x = _examples(model)
    return {
        "gibbs samples": mp.sample(model, 4, steps=10, moves=5, seed=14, threads=1),
        "model rates": mp.model_rates(model, seed=15, threads=1).biases[0],
        "data rates": mp.data_rates(_train(model), model).biases[0],
        "friction": schedule.friction,
        "friction without data": free.friction,
        "pilot": np.array([schedule.pilot.linear_kept, schedule.pilot.gain, schedule.pilot.gain_error]),
        "csl": mp.csl_log_prob(model, x, steps=30, chains=3, every=5, seed=16, threads=1).log_weights,
        "log f": _sampled_log_f(model, x),
        **({"exact": np.array([mp.exact_log_z(model, threads=1)])} if model.n_visible < 10 else {}),
    }


PARTS: dict[str, Callable[[], dict[str, np.ndarray]]] = {}
"""Pinned arrays are named after one of these and after what it computes: "rbm, mixed: ais"."""
for _name, _model in MODELS.items():
    PARTS |= {f"{_name}, {precision}": partial(_annealing, _model, precision) for precision in PRECISIONS}
    PARTS[_name] = partial(_others, _model)


if __name__ == "__main__":  # python -m estimators.pins NAME …: pin what is named, such as "dbn: pilot", anew
    import json
    import sys
    from pathlib import Path

    file = Path(__file__).with_suffix(".json")
    pins = json.loads(file.read_text())
    for name in sys.argv[1:]:
        part, array = name.split(": ")
        pins[name] = PARTS[part]()[array].tolist()
    file.write_text(json.dumps(pins) + "\n")
