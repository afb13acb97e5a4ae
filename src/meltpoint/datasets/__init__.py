"""Data: `load(name)` for named sets of binary images, `names()` for what there is, `read(path)` for a file."""

from meltpoint.datasets.catalogue import load, names
from meltpoint.datasets.dataset import Dataset
from meltpoint.datasets.read import read

__all__ = ["Dataset", "load", "names", "read"]
