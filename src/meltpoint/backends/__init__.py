"""What runs a path: a readable reference in NumPy, and compiled kernels."""
