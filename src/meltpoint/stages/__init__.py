"""Stages of an evaluation: what they are made of, and how their tasks, and those of log f, are computed and kept."""
