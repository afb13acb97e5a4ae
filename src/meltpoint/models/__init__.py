"""Models: their parameters, their unnormalised probabilities, and what estimators ask of them."""

from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.factor_graph import FactorGraph
from meltpoint.models.ising import Ising
from meltpoint.models.model import Model
from meltpoint.models.potts import Potts
from meltpoint.models.rbm import RBM

KINDS = {model.kind: model for model in (RBM, DBM, DBN, Ising, Potts, FactorGraph)}
"""Kinds of models by their names in files."""

__all__ = ["DBM", "DBN", "KINDS", "RBM", "FactorGraph", "Ising", "Model", "Potts"]
