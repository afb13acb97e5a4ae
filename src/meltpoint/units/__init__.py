"""Units: one file per kind, each with the answers that `Unit` asks for."""

from meltpoint.errors import InputError
from meltpoint.units.bernoulli import Bernoulli
from meltpoint.units.spin import Spin
from meltpoint.units.unit import Unit

BERNOULLI, SPIN = Bernoulli(), Spin()
UNITS = {unit.name: unit for unit in (BERNOULLI, SPIN)}


def unit_named(name: str | Unit) -> Unit:
    """The kind of unit of this name.

    >>> unit_named("spin").values
    (-1.0, 1.0)
    """
    if isinstance(name, Unit):
        return name
    if not isinstance(name, str) or name not in UNITS:
        raise InputError(
            found=f"units {name!r}",
            expected=" or ".join(map(repr, UNITS)),
            remedy="'bernoulli' units are 0 and 1, 'spin' units are -1 and +1",
        )
    return UNITS[name]
