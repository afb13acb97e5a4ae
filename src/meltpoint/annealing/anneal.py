"""`annealing.loop` by its old name, until its users have switched."""

from meltpoint.annealing.loop import TILE, Annealed, anneal, check_threads, compile_kernels

__all__ = ["TILE", "Annealed", "anneal", "check_threads", "compile_kernels"]
