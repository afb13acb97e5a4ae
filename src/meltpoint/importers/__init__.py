"""Models and evidence in the file formats of other programs: one short file for each."""
