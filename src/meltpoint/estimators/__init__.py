"""Estimators: a few lines each on top of the annealing loop."""
