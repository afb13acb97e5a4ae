"""Layers: a file for each kind of unit, with the methods of `Unit`; a new kind is one file and one line of LAYERS."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from meltpoint.errors import InputError
from meltpoint.layers.gaussian import Gaussian
from meltpoint.layers.potts import Potts
from meltpoint.layers.two_state import Bernoulli, Spin, TwoState
from meltpoint.layers.unit import Unit

LAYERS: dict[str, type[Unit]] = {
    "bernoulli": Bernoulli,
    "spin": Spin,
    "potts": Potts,
    "gaussian": Gaussian,
}
"""All kinds by their names in files."""

BERNOULLI, SPIN, GAUSSIAN = Bernoulli(), Spin(), Gaussian()
TWO_STATE: dict[str, TwoState] = {unit.name: unit for unit in (BERNOULLI, SPIN)}

__all__ = [
    "BERNOULLI",
    "GAUSSIAN",
    "LAYERS",
    "SPIN",
    "Bernoulli",
    "Gaussian",
    "Potts",
    "Spin",
    "TwoState",
    "Unit",
    "fitted_unit",
    "kind_of_layer",
    "layer_named",
    "unit_named",
]


def kind_of_layer(kind: str | Unit) -> type[Unit]:
    """The class of a kind of unit that is given by its name or as itself."""
    if isinstance(kind, Unit):
        return type(kind)
    if not isinstance(kind, str) or kind not in LAYERS:
        *names, last = map(repr, LAYERS)
        known = [f"{name!r} units are {own.values_in_words}" for name, own in LAYERS.items()]
        raise InputError(
            found=f"units {kind!r}", expected=f"{', '.join(names)} or {last}", remedy=", ".join(known)
        )
    return LAYERS[kind]


def layer_named(kind: str | Unit, n_states: int = 1) -> Unit:
    """The unit itself, or a kind of unit by its name, with this number of states where it takes one.

    >>> layer_named("potts", 3), layer_named("spin", 2)
    (potts(3), spin)
    """
    own = kind_of_layer(kind)
    if not isinstance(kind, Unit):
        return own(n_states) if own.counts_states else own()  # pyright: ignore[reportCallIssue]
    if own.counts_states and kind.n_states != n_states:
        raise InputError(
            found=f"weights of {n_states} states",
            expected=f"{kind.n_states}, as the {kind!r} units have",
            remedy="weights of Potts units are (sites, states, hidden)",
        )
    return kind


def unit_named(kind: str | Unit) -> TwoState:
    """The two-state unit of this name, or the unit itself, which must have two states.

    >>> unit_named("spin").values
    (-1.0, 1.0)
    """
    unit = kind.bit if isinstance(kind, Unit) else TWO_STATE.get(kind) if isinstance(kind, str) else None
    if unit is None:
        raise InputError(
            found=f"units {kind!r}",
            expected=f"{' or '.join(map(repr, TWO_STATE))} units in this layer",
            remedy="'bernoulli' units are 0 and 1, 'spin' units are -1 and +1; only the units of an RBM can have "
            "other states",
        )
    return unit


def fitted_unit(kind: str | Unit, data: NDArray[Any], name: str) -> Unit:
    """Units of a kind for training data (example, unit), with as many states as these show, or the scales they have.

    >>> fitted_unit("potts", np.array([[0, 2], [1, 0]]), "data")
    potts(3)
    """
    if not isinstance(kind, Unit):
        shown = int(data.max()) if data.dtype.kind in "iufb" and np.isfinite(data).all() else 0
        kind = layer_named(kind, max(1, shown) + 1)
    return kind.fitted(data, name)
