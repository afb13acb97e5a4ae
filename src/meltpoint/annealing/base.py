"""Base distributions: what chains start from. Any `Distribution` will do; usually it is independent units."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from meltpoint.annealing.blocks import Draws, UnitBlock
from meltpoint.annealing.path import Distribution
from meltpoint.arguments import read
from meltpoint.errors import InputError
from meltpoint.foreign import real_array
from meltpoint.layers.unit import Floats, States, Unit
from meltpoint.records import short_repr

BaseName: TypeAlias = Literal["uniform", "data", "model"]

_LONGEST_NAME = 200  # bytes; file systems allow 255, of which a prefix and a suffix take some


@dataclass(frozen=True, eq=False, repr=False)
class Base:
    """Biases (unit, *input_shape) of independent units: one array per layer, lowest first; other layers are uniform.

    They are in the terms of the units: a spin with bias b is +1 with log odds 2b; a Potts unit has one for each state.

    Parameters
    ----------
    name
        What reports call the base; files of a run's folder are named after it.
    biases
        One array for each layer, lowest first.

    >>> Base("my rates", (np.array([-1.0, 1.0]),))
    Base(name='my rates', biases=(float64(2,),))
    """

    name: str
    biases: tuple[Floats, ...] = ()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        name = self.name
        if (
            not isinstance(name, str)
            or not name.isprintable()
            or not 0 < len(name.encode()) <= _LONGEST_NAME
            or set(name) & {"/", "\\"}
        ):
            raise InputError(
                found=f"a base named {name!r}",
                expected=f"1 to {_LONGEST_NAME} printable bytes without / and \\",
                remedy="choose a plain name: files of a run's folder are named after the base",
            )
        biases = tuple(real_array(bias, "biases") for bias in read(Sequence[Any], self.biases, "biases"))
        object.__setattr__(self, "biases", biases)


def uniform() -> Base:
    """Every state is equally probable.

    >>> uniform()
    Base(name='uniform', biases=())
    """
    return Base("uniform")


BaseLike: TypeAlias = Base | BaseName | Distribution | None
"""A base, its name, or a distribution that a model's path takes; None is uniform."""


@dataclass(frozen=True, eq=False)
class IndependentUnits:
    """Independent units of one kind with inputs (unit, *input_shape): a base as a distribution of states."""

    name: str
    unit: Unit
    inputs: Floats

    def draw(self, draws: Draws) -> States:
        n = len(self.inputs)
        inputs = np.broadcast_to(self.inputs, (len(draws), *self.inputs.shape))
        return draws.units(UnitBlock(self.unit, slice(0, n), (n,)), inputs)

    def log_prob(self, states: States) -> Floats:
        log_weights = self.unit.log_weight(states, self.inputs)
        return (log_weights - self._log_partition).sum(axis=1)

    @cached_property
    def _log_partition(self) -> Floats:
        return self.unit.log_partition(self.inputs)
