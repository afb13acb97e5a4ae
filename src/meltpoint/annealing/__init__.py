"""Annealing from a base to a model: paths, transitions, bases, fields in blocks, schedules.

What models of your own are made of is here by name; docs/own-model.md shows how.
"""

from meltpoint.annealing.base import IndependentUnits
from meltpoint.annealing.blocks import Segment, UnitBlock
from meltpoint.annealing.draws import Draws, GeneratorDraws
from meltpoint.annealing.field import BlockPath, BrokenLine, MarkovRandomField
from meltpoint.annealing.loop import anneal_reference
from meltpoint.annealing.path import Distribution, GeometricPath, Path
from meltpoint.annealing.transitions import BlockGibbs, Transition

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
