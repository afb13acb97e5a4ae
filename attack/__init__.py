"""Attacks on meltpoint: programs with a seed and a time limit that try to lose results or to get something in."""

import os

# Threads of a numerical library do not survive a fork.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")
