"""`annealing.path` by its old name, until its users have switched."""

from meltpoint.annealing.path import TwoSidedPath as Family

__all__ = ["Family"]
