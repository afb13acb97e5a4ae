"""The annealing loop fused by Numba: one thread keeps a tile of chains for the whole run."""
