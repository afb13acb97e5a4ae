"""Named data sets, their binarisation, and examples from files; `meltpoint.datasets` is what users call."""
