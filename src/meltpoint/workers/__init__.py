"""Executors besides the threads of this process: local processes and the workers of a Dask cluster."""
