"""Models: their parameters, their unnormalised probabilities, and what estimators ask of them."""

from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.model import Model
from meltpoint.models.rbm import RBM

KINDS = {model.kind: model for model in (RBM, DBM, DBN)}
"""Kinds of models by their names in files."""

__all__ = ["DBM", "DBN", "KINDS", "RBM", "Model"]
