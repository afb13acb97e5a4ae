"""The compiled backends, of bipartite models and of graphs, and their kernels."""
