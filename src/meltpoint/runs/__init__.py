"""Runs on disk: a folder with what a run is, and the pieces of it that are finished."""
