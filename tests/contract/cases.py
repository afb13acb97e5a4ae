"""Every kind of unit in every kind of model: what the contract is checked on."""

import numpy as np

import meltpoint as mp
from contract.three_blocks import three_blocks
from meltpoint.models import Model
from oracle.driving import models

UNITS = ("bernoulli", "spin")

RBMS: list[Model] = [
    models.rbm(201, 3, 2, 1.5, units=(visible, hidden)) for visible in UNITS for hidden in UNITS
]
DBMS: list[Model] = [
    *(models.dbm(202, [2, 2, 2], 1.2, units=unit) for unit in UNITS),
    models.dbm(203, [2, 1, 2, 1], 1.2, units=["spin", "bernoulli", "spin", "bernoulli"]),
]
DBNS: list[Model] = [
    *(models.dbn(204, [3, 2, 2], 1.0, units=[unit] * 3) for unit in UNITS),
    models.dbn(205, [2, 2, 2, 1], 1.0, units=["spin", "bernoulli", "spin", "bernoulli"]),
]
THREE_BLOCKS: list[Model] = [
    three_blocks(kind, unit) for kind in ("visible", "hidden", "summed out") for unit in UNITS
]
TWO_SIDED = [*RBMS, *DBMS, *DBNS]
ALL = [*TWO_SIDED, *THREE_BLOCKS]
EXACT_LOG_F = [*RBMS, *THREE_BLOCKS]
SPINS = [model for model in ALL if any(unit.name == "spin" for unit in model.units)]
HEATED = [model for model in ALL if model.raise_passes == 2]


def name(model: object) -> str:
    """For a test's id."""
    return repr(model)


def saved_and_evaluated(model, tmp_path):
    """Samples of a model that is written and read again, and its last report: those of all bases hold the truth."""
    x = mp.sample(model, 60, steps=50, moves=5)
    mp.save(model, tmp_path / "model.npz")
    again = mp.load(tmp_path / "model.npz")
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(again.log_f(x), model.log_f(x))
    exact = model.log_f(x[:20]).mean() - mp.exact_log_z(model)
    for base in ("data", "model", "uniform"):
        # The reference backend runs some of these models: one pilot is enough.
        how = {"steps": 100, "ais_chains": 50, "exact": False} | (
            {} if base == "data" else {"schedule": "linear"}
        )
        report = mp.evaluate(model, x[:20], x, base=base, **how)
        low, high = report.between
        assert low - 1e-9 <= exact <= high + 1e-9
    return x, report
