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
    from meltpoint import annealing, datasets, layers
    from meltpoint.annealing.base import Base, uniform
    from meltpoint.errors import InputError, SystemFailure
    from meltpoint.estimators.ais import LogZ, ais_log_z
    from meltpoint.estimators.base_rates import data_rates, model_rates
    from meltpoint.estimators.conventions import ConventionCheck, check_conventions
    from meltpoint.estimators.csl import csl_log_prob
    from meltpoint.estimators.exact import exact_log_z
    from meltpoint.estimators.particles import LogProb
    from meltpoint.estimators.pilot import FrictionSchedule, friction_schedule
    from meltpoint.estimators.raise_ import raise_log_prob
    from meltpoint.estimators.sampling import sample, sample_annealing_model
    from meltpoint.evaluation.compare import compare
    from meltpoint.evaluation.evaluate import evaluate
    from meltpoint.evaluation.log_z import log_z
    from meltpoint.evaluation.stored import merge_runs, read_run
    from meltpoint.evaluation.sweep import sweep
    from meltpoint.evaluation.trace import trace
    from meltpoint.formats.load import load
    from meltpoint.formats.models import save
    from meltpoint.formats.objects import from_object
    from meltpoint.models.dbm import DBM
    from meltpoint.models.dbn import DBN
    from meltpoint.models.factor_graph import FactorGraph
    from meltpoint.models.ising import Ising
    from meltpoint.models.model import Model
    from meltpoint.models.potts import Potts
    from meltpoint.models.rbm import RBM
    from meltpoint.results.comparison import Comparison
    from meltpoint.results.log_z import LogZBracket
    from meltpoint.results.report import Interrupted, Report
    from meltpoint.results.trace import Trace
    from meltpoint.statistics.estimate import Estimate
    from meltpoint.training.train import train_dbm, train_dbn, train_rbm

_TAKES_MODELS: dict[str, tuple[type, ...]] = {
    "ais_log_z": (),
    "check_conventions": (),
    "csl_log_prob": (),
    "data_rates": (),
    "exact_log_z": (tuple,),
    "friction_schedule": (),
    "model_rates": (),
    "raise_log_prob": (),
    "sample": (),
    "sample_annealing_model": (),
}
"""Functions that take objects of other libraries as models, and what else they take: here these become models."""
_ROOMS = ("annealing", "datasets", "layers")
_HOMES = {
    "Base": "annealing.base",
    "data_rates": "estimators.base_rates",
    "model_rates": "estimators.base_rates",
    "uniform": "annealing.base",
    "InputError": "errors",
    "SystemFailure": "errors",
    "LogZ": "estimators.ais",
    "ais_log_z": "estimators.ais",
    "ConventionCheck": "estimators.conventions",
    "check_conventions": "estimators.conventions",
    "csl_log_prob": "estimators.csl",
    "exact_log_z": "estimators.exact",
    "FrictionSchedule": "estimators.pilot",
    "friction_schedule": "estimators.pilot",
    "LogProb": "estimators.particles",
    "raise_log_prob": "estimators.raise_",
    "sample": "estimators.sampling",
    "sample_annealing_model": "estimators.sampling",
    "Interrupted": "results.report",
    "compare": "evaluation.compare",
    "evaluate": "evaluation.evaluate",
    "log_z": "evaluation.log_z",
    "merge_runs": "evaluation.stored",
    "read_run": "evaluation.stored",
    "from_object": "formats.objects",
    "save": "formats.models",
    "load": "formats.load",
    "trace": "evaluation.trace",
    "sweep": "evaluation.sweep",
    "DBM": "models.dbm",
    "DBN": "models.dbn",
    "FactorGraph": "models.factor_graph",
    "Ising": "models.ising",
    "Model": "models.model",
    "Potts": "models.potts",
    "RBM": "models.rbm",
    "LogZBracket": "results.log_z",
    "Comparison": "results.comparison",
    "Report": "results.report",
    "Trace": "results.trace",
    "Estimate": "statistics.estimate",
    "train_dbm": "training.train",
    "train_dbn": "training.train",
    "train_rbm": "training.train",
}

__all__ = [
    "DBM",
    "DBN",
    "RBM",
    "Base",
    "Comparison",
    "ConventionCheck",
    "Estimate",
    "FactorGraph",
    "FrictionSchedule",
    "InputError",
    "Interrupted",
    "Ising",
    "LogProb",
    "LogZ",
    "LogZBracket",
    "Model",
    "Potts",
    "Report",
    "SystemFailure",
    "Trace",
    "__version__",
    "ais_log_z",
    "annealing",
    "check_conventions",
    "compare",
    "csl_log_prob",
    "data_rates",
    "datasets",
    "evaluate",
    "exact_log_z",
    "friction_schedule",
    "from_object",
    "layers",
    "load",
    "log_z",
    "merge_runs",
    "model_rates",
    "raise_log_prob",
    "read_run",
    "sample",
    "sample_annealing_model",
    "save",
    "sweep",
    "trace",
    "train_dbm",
    "train_dbn",
    "train_rbm",
    "uniform",
]


if not TYPE_CHECKING:  # a type checker that saw this would accept every misspelt name

    def __getattr__(name: str) -> Any:  # noqa: ANN401
        if name in _ROOMS:
            return import_module(f"meltpoint.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'meltpoint' has no attribute {name!r}")
        value = getattr(import_module(f"meltpoint.{_HOMES[name]}"), name)
        if name in _TAKES_MODELS:
            value = import_module("meltpoint.formats.objects").takes_models(value, _TAKES_MODELS[name])
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
