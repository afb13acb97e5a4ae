"""Statistics of weights and estimates, all in log space."""
