"""Models: their parameters, their unnormalised probabilities, and how each is two-sided."""

from typing import TypeAlias

from meltpoint.models.dbm import DBM
from meltpoint.models.dbn import DBN
from meltpoint.models.rbm import RBM

Model: TypeAlias = RBM | DBM | DBN


def mrf_of(model: Model) -> RBM | DBM:
    """The undirected part, whose log Z is unknown: the model itself, or a DBN's top RBM."""
    return model.top if isinstance(model, DBN) else model
