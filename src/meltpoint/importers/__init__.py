"""Models and evidence in other people's file formats: one short file for each."""
