"""Data: `load(name)` for named sets of binary images, `names()` for what there is, `read(path)` for a file."""

from meltpoint.data.catalogue import load, names
from meltpoint.data.dataset import Dataset
from meltpoint.data.read import read

__all__ = ["Dataset", "load", "names", "read"]
