"""meltpoint says how probable a Markov random field makes a test set, from both sides.

    import meltpoint as mp
    report = mp.evaluate(mp.load("model.npz"), test, train)
    print(report)

Names are imported when they are first used, so that importing meltpoint costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from meltpoint.version import __version__

if TYPE_CHECKING:
    from meltpoint import datasets
    from meltpoint.annealing.base import Base, data_rates, model_rates, uniform
    from meltpoint.errors import InputError, SystemFailure
    from meltpoint.estimators.ais import LogZ, ais_log_z
    from meltpoint.estimators.csl import csl_log_prob
    from meltpoint.estimators.exact import exact_log_z
    from meltpoint.estimators.particles import LogProb
    from meltpoint.estimators.pilot import FrictionSchedule, friction_schedule
    from meltpoint.estimators.raise_ import raise_log_prob
    from meltpoint.estimators.sampling import sample, sample_annealing_model
    from meltpoint.evaluation.evaluate import evaluate
    from meltpoint.evaluation.stored import merge_runs, read_run
    from meltpoint.evaluation.sweep import sweep
    from meltpoint.files.models import load, save
    from meltpoint.models.dbm import DBM
    from meltpoint.models.dbn import DBN
    from meltpoint.models.factor_graph import FactorGraph
    from meltpoint.models.ising import Ising
    from meltpoint.models.potts import Potts
    from meltpoint.models.rbm import RBM
    from meltpoint.report.report import Interrupted, Report
    from meltpoint.statistics.estimate import Estimate
    from meltpoint.training.dbm import train_dbm
    from meltpoint.training.dbn import train_dbn
    from meltpoint.training.rbm import train_rbm

_HOMES = {
    "Base": "annealing.base",
    "data_rates": "annealing.base",
    "model_rates": "annealing.base",
    "uniform": "annealing.base",
    "InputError": "errors",
    "SystemFailure": "errors",
    "LogZ": "estimators.ais",
    "ais_log_z": "estimators.ais",
    "csl_log_prob": "estimators.csl",
    "exact_log_z": "estimators.exact",
    "FrictionSchedule": "estimators.pilot",
    "friction_schedule": "estimators.pilot",
    "LogProb": "estimators.particles",
    "raise_log_prob": "estimators.raise_",
    "sample": "estimators.sampling",
    "sample_annealing_model": "estimators.sampling",
    "Interrupted": "report.report",
    "evaluate": "evaluation.evaluate",
    "merge_runs": "evaluation.stored",
    "read_run": "evaluation.stored",
    "sweep": "evaluation.sweep",
    "load": "files.models",
    "save": "files.models",
    "DBM": "models.dbm",
    "DBN": "models.dbn",
    "FactorGraph": "models.factor_graph",
    "Ising": "models.ising",
    "Potts": "models.potts",
    "RBM": "models.rbm",
    "Report": "report.report",
    "Estimate": "statistics.estimate",
    "train_dbm": "training.dbm",
    "train_dbn": "training.dbn",
    "train_rbm": "training.rbm",
}

__all__ = [
    "DBM",
    "DBN",
    "RBM",
    "Base",
    "Estimate",
    "FactorGraph",
    "FrictionSchedule",
    "InputError",
    "Interrupted",
    "Ising",
    "LogProb",
    "LogZ",
    "Potts",
    "Report",
    "SystemFailure",
    "__version__",
    "ais_log_z",
    "csl_log_prob",
    "data_rates",
    "datasets",
    "evaluate",
    "exact_log_z",
    "friction_schedule",
    "load",
    "merge_runs",
    "model_rates",
    "raise_log_prob",
    "read_run",
    "sample",
    "sample_annealing_model",
    "save",
    "sweep",
    "train_dbm",
    "train_dbn",
    "train_rbm",
    "uniform",
]


if not TYPE_CHECKING:  # a type checker that saw this would accept every misspelt name

    def __getattr__(name: str) -> Any:  # noqa: ANN401
        if name == "datasets":
            return import_module("meltpoint.datasets")
        if name not in _HOMES:
            raise AttributeError(f"module 'meltpoint' has no attribute {name!r}")
        value = getattr(import_module(f"meltpoint.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
