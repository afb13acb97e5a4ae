"""`annealing.loop` by its old name, until its users have switched."""

from meltpoint.annealing.loop import check_threads

__all__ = ["check_threads"]
