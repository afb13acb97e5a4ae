"""Other readings of a model's parameters: what the same numbers mean under another convention.

Weights that are the wrong way round, a sign, or spins taken for bits give a model that is valid and wrong. Each model
lists the readings that are plausible for it (`Model.other_readings`), the most usual mistake first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from meltpoint.units import Unit
from meltpoint.units.unit import Floats

if TYPE_CHECKING:
    from meltpoint.models.model import Model


@dataclass(frozen=True)
class Reading:
    """A convention by name, what it means in words, what to do if it is the right one, and the model it makes.

    `rank` says how unusual it is: 0 for an exchange or a sign, 1 for other units, 2 for other units on one side.
    """

    name: str
    meaning: str
    remedy: str
    model: "Callable[[], Model]"
    rank: int = 0

    def least_gain(self, is_poor: bool) -> float:
        """How much better it must be before it is suspected, for a model that is worse than independent units or not.

        In shares of their log pseudo-likelihood. Other units make a model sharper or flatter, which is better for every
        model that was trained too little or too much: so they need more.
        """
        if self.rank == 0:
            return 0.001
        return 0.02 if is_poor else 0.3


def rbm_readings(
    rbm: "Callable[..., Model]",
    weights: Floats,
    visible_bias: Floats,
    hidden_bias: Floats,
    units: Sequence[Unit],
) -> list[Reading]:
    """Other readings of an RBM of bits or spins, which `rbm` makes from weights, biases and the names of its units."""
    w, a, b, own = weights, visible_bias, hidden_bias, tuple(unit.name for unit in units)
    if not {*own} <= {"bernoulli", "spin"}:
        return []

    def with_units(visible: str, hidden: str) -> Callable[..., "Model"]:
        return partial(rbm, visible=visible, hidden=hidden)

    same = with_units(*own)
    readings = [
        Reading(
            "sign", "all parameters have the other sign", "negate all parameters", partial(same, -w, -a, -b)
        )
    ]
    if w.shape[0] == w.shape[1]:
        readings += [
            Reading(
                "transposed",
                "the weights are (hidden, visible)",
                "transpose the weights",
                partial(same, w.T, a, b),
            ),
            Reading(
                "biases swapped",
                "visible and hidden biases are exchanged",
                "exchange visible_bias and hidden_bias",
                partial(same, w, b, a),
            ),
            Reading(
                "sides swapped",
                "visible and hidden units are exchanged",
                "transpose the weights and exchange the biases",
                partial(same, w.T, b, a),
            ),
        ]
    for visible, hidden in _UNITS:
        if (visible, hidden) != own:
            readings.append(
                Reading(
                    visible if visible == hidden else f"{visible}, {hidden}",
                    f"the parameters are for {_values(visible, hidden)}",
                    f"make the model with visible={visible!r}, hidden={hidden!r}",
                    partial(with_units(visible, hidden), w, a, b),
                    rank=1 if visible == hidden else 2,
                )
            )
    return readings


_UNITS = (("spin", "spin"), ("bernoulli", "bernoulli"), ("spin", "bernoulli"), ("bernoulli", "spin"))
_VALUES = {"spin": "-1 and +1", "bernoulli": "0 and 1"}


def _values(visible: str, hidden: str) -> str:
    if visible == hidden:
        return f"units that are {_VALUES[visible]}"
    return f"visible units that are {_VALUES[visible]} and hidden units that are {_VALUES[hidden]}"
