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
    from meltpoint.evaluation.several import sweep
    from meltpoint.evaluation.stored import merge_runs, read_run
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

_ROOMS = ("annealing", "datasets", "layers")
_HOMES = {
    name: home
    for home, names in {
        "annealing.base": ("Base", "uniform"),
        "errors": ("InputError", "SystemFailure"),
        "estimators.ais": ("LogZ", "ais_log_z"),
        "estimators.base_rates": ("data_rates", "model_rates"),
        "estimators.conventions": ("ConventionCheck", "check_conventions"),
        "estimators.csl": ("csl_log_prob",),
        "estimators.exact": ("exact_log_z",),
        "estimators.particles": ("LogProb",),
        "estimators.pilot": ("FrictionSchedule", "friction_schedule"),
        "estimators.raise_": ("raise_log_prob",),
        "estimators.sampling": ("sample", "sample_annealing_model"),
        "evaluation.compare": ("compare",),
        "evaluation.evaluate": ("evaluate",),
        "evaluation.log_z": ("log_z",),
        "evaluation.stored": ("merge_runs", "read_run"),
        "evaluation.several": ("sweep",),
        "evaluation.trace": ("trace",),
        "formats.load": ("load",),
        "formats.models": ("save",),
        "formats.objects": ("from_object",),
        "models.dbm": ("DBM",),
        "models.dbn": ("DBN",),
        "models.factor_graph": ("FactorGraph",),
        "models.ising": ("Ising",),
        "models.model": ("Model",),
        "models.potts": ("Potts",),
        "models.rbm": ("RBM",),
        "results.comparison": ("Comparison",),
        "results.log_z": ("LogZBracket",),
        "results.report": ("Interrupted", "Report"),
        "results.trace": ("Trace",),
        "statistics.estimate": ("Estimate",),
        "training.train": ("train_dbm", "train_dbn", "train_rbm"),
    }.items()
    for name in names
}
_ESTIMATORS = ("ais_log_z", "check_conventions", "csl_log_prob", "friction_schedule", "raise_log_prob")
_DRAWING = ("data_rates", "model_rates", "sample", "sample_annealing_model")
_TAKES_MODELS = {
    **dict.fromkeys((*_ESTIMATORS, *_DRAWING), ()),
    "exact_log_z": (tuple,),
    **dict.fromkeys(("evaluate", "log_z", "sweep"), (object,)),  # which compare data with what objects say
}
"""Functions that take objects of other libraries as models, and what else they take: here these become models."""

__all__ = ["DBM", "DBN", "RBM", "FactorGraph", "Ising", "Model", "Potts", "__version__"]
__all__ += ["check_conventions", "compare", "evaluate", "log_z", "merge_runs", "read_run", "sweep", "trace"]
__all__ += ["ais_log_z", "csl_log_prob", "exact_log_z", "raise_log_prob", "sample", "sample_annealing_model"]
__all__ += ["Base", "data_rates", "friction_schedule", "model_rates", "uniform"]
__all__ += ["Comparison", "ConventionCheck", "Estimate", "FrictionSchedule", "LogProb", "LogZ", "LogZBracket"]
__all__ += ["InputError", "Interrupted", "Report", "SystemFailure", "Trace"]
__all__ += ["annealing", "datasets", "from_object", "layers", "load", "save"]
__all__ += ["train_dbm", "train_dbn", "train_rbm"]


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
