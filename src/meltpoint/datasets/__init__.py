"""Named data sets of binary images: `load(name)`, and `names()` for what there is."""

from meltpoint.datasets.catalogue import load, names
from meltpoint.datasets.dataset import Dataset

__all__ = ["Dataset", "load", "names"]
