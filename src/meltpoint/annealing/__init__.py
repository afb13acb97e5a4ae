"""Annealing from a base to a model: paths, transitions, bases, fields in blocks, schedules.

What models of your own are made of is here by name; docs/own-model.md shows how.
"""

from meltpoint.annealing.base import IndependentUnits
from meltpoint.annealing.blocks import Draws, GeneratorDraws, Segment, UnitBlock
from meltpoint.annealing.field import BlockPath, BrokenLine, MarkovRandomField
from meltpoint.annealing.path import (
    BlockGibbs,
    Distribution,
    GeometricPath,
    Path,
    Transition,
    anneal_reference,
)

__all__ = [
    "BlockGibbs",
    "BlockPath",
    "BrokenLine",
    "Distribution",
    "Draws",
    "GeneratorDraws",
    "GeometricPath",
    "IndependentUnits",
    "MarkovRandomField",
    "Path",
    "Segment",
    "Transition",
    "UnitBlock",
    "anneal_reference",
]
