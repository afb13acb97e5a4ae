"""The annealing loop, its path, its schedules, its base distributions and its randomness."""
