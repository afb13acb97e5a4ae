"""Compiled code that models, annealing and training share."""
