"""The compiled backends, of layered models and of graphs, and their kernels."""
