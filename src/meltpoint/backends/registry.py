"""All backends, and the one that runs a path: the first that supports it and its transition."""

from meltpoint.annealing.path import Path
from meltpoint.arguments import read
from meltpoint.backends.backend import Backend, PreparedPath
from meltpoint.backends.numba.bipartite import BipartiteBackend
from meltpoint.backends.numba.graph import GraphBackend
from meltpoint.backends.numba.precision import Precision
from meltpoint.backends.reference import ReferenceBackend

BACKENDS: tuple[Backend, ...] = (BipartiteBackend(), GraphBackend(), ReferenceBackend())
"""In the order in which they are asked."""


def prepare_path(path: Path, precision: Precision = "mixed") -> PreparedPath:
    """The path as the first backend that supports it runs it."""
    read(Precision, precision, "precision", "'mixed' is fast and unbiased, 'float64' is for checking")
    backend = next(backend for backend in BACKENDS if backend.supports(path))
    return backend.prepare(path, precision)
