"""Units: one file per kind, each with the methods of `Unit`."""

from collections.abc import Sequence

from meltpoint.errors import InputError
from meltpoint.layers.bernoulli import Bernoulli
from meltpoint.layers.gaussian import Gaussian
from meltpoint.layers.potts import Potts
from meltpoint.layers.spin import Spin
from meltpoint.layers.unit import TwoState, Unit

__all__ = [
    "BERNOULLI",
    "GAUSSIAN",
    "SPIN",
    "TWO_STATE",
    "Bernoulli",
    "Gaussian",
    "Potts",
    "Spin",
    "TwoState",
    "Unit",
    "two_state",
    "unit_named",
]

BERNOULLI, SPIN, GAUSSIAN = Bernoulli(), Spin(), Gaussian()
TWO_STATE: dict[str, TwoState] = {unit.name: unit for unit in (BERNOULLI, SPIN)}


def unit_named(name: str | Unit) -> Unit:
    """The kind of two-state unit of this name, or the unit itself. Potts units are made with their number of states.

    >>> unit_named("spin").values
    (-1.0, 1.0)
    """
    if isinstance(name, Unit):
        return name
    if not isinstance(name, str) or name not in TWO_STATE:
        raise InputError(
            found=f"units {name!r}",
            expected=" or ".join(map(repr, TWO_STATE)),
            remedy="'bernoulli' units are 0 and 1, 'spin' units are -1 and +1",
        )
    return TWO_STATE[name]


def two_state(units: Sequence[Unit]) -> tuple[TwoState, ...]:
    """The same units, which must all have two states.

    >>> two_state([SPIN])
    (spin,)
    """
    found: list[TwoState] = []
    for unit in units:
        if not isinstance(unit, TwoState):
            raise InputError(
                found=f"{unit.name} units",
                expected=" or ".join(map(repr, TWO_STATE)) + " units in this layer",
                remedy="only the visible units of an RBM can have other states",
            )
        found.append(unit)
    return tuple(found)
