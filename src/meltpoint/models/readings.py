"""Other readings of a model's parameters: what the same numbers mean under another convention.

Weights that are the wrong way round, a sign, or spins taken for bits give a model that is valid and wrong. Each model
lists the readings that are plausible for it (`Model.other_readings`), the most usual mistake first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Sparse
from meltpoint.layers import Unit
from meltpoint.layers.unit import Floats

if TYPE_CHECKING:
    from meltpoint.models.model import Model


@dataclass(frozen=True, eq=False)
class Reading:
    """A convention by name, what it means in words, and what to do if it is the right one.

    It is another model (`model` makes it, None is the same one), the same with all inputs times `scale`, or with other
    numbers for the states: state s of the data is state states[s] of the model. `rank` says how unusual it is, from 0
    on; `effect` what it does to the units' inputs. A sharper reading, with larger inputs, fits better for every model
    that was trained too little. So it is held against the same model at half the temperature, "colder", which is no
    convention.
    """

    name: str
    meaning: str
    remedy: str
    model: "Callable[[], Model] | None" = None
    scale: float = 1.0
    states: NDArray[np.uint8] | None = None
    rank: int = 0

    effect: Literal["none", "sharper", "flatter", "colder"] = "none"

    @property
    def least_gain(self) -> float:
        """How much better it must be before it is suspected, in shares of what independent units have."""
        return 0.001 if self.effect == "none" else 0.02


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
    all_spins = own == ("spin", "spin")
    if not all_spins:
        readings.append(Reading("colder", "", "", partial(same, 2 * w, 2 * a, 2 * b), effect="colder"))
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
    others = [
        Reading(
            visible if visible == hidden else f"{visible}, {hidden}",
            f"the parameters are for {_values(visible, hidden)}",
            f"make the model with visible={visible!r}, hidden={hidden!r}",
            partial(with_units(visible, hidden), w, a, b),
            rank=2 if visible != hidden else 0 if all_spins else 1,
            effect="flatter" if all_spins else "sharper",
        )
        for visible, hidden in _UNITS
        if (visible, hidden) != own
    ]
    # A flatter model is rarely better unless it is right.
    return [*others, *readings] if all_spins else [*readings, *others]


_UNITS = (("spin", "spin"), ("bernoulli", "bernoulli"), ("spin", "bernoulli"), ("bernoulli", "spin"))
_VALUES = {"spin": "-1 and +1", "bernoulli": "0 and 1"}


def _values(visible: str, hidden: str) -> str:
    if visible == hidden:
        return f"units that are {_VALUES[visible]}"
    return f"visible units that are {_VALUES[visible]} and hidden units that are {_VALUES[hidden]}"


def ising_readings(
    ising: "Callable[..., Model]", couplings: Sparse, fields: Floats, units: str
) -> list[Reading]:
    """Other readings of an Ising model without hidden sites, which `ising` makes from couplings, fields and units."""
    sign = Reading(
        "sign", "couplings and fields have the other sign", "negate couplings and fields", scale=-1.0
    )
    if fields.size > _LARGE:
        return [sign]
    other = "bernoulli" if units == "spin" else "spin"
    return [
        sign,
        Reading("colder", "", "", scale=2.0, effect="colder"),
        Reading(
            "sign of the couplings",
            "the couplings have the other sign",
            "negate the couplings",
            partial(ising, -couplings, fields, units),
        ),
        Reading(
            "sign of the fields",
            "the fields have the other sign",
            "negate the fields",
            partial(ising, couplings, -fields, units),
        ),
        Reading(
            other,
            f"the parameters are for sites that are {_VALUES[other]}",
            f"make the model with units={other!r}",
            partial(ising, couplings, fields, other),
            rank=1 if other == "spin" else 0,
            effect="sharper" if other == "spin" else "flatter",
        ),
        Reading(
            "pairs once",
            "the couplings are those of a sum over all i and j, in which every pair counts twice",
            "double the couplings",
            partial(ising, couplings * 2.0, fields, units),
            rank=1,
            effect="sharper",
        ),
        Reading(
            "pairs twice",
            "every pair was counted twice",
            "halve the couplings",
            partial(ising, couplings * 0.5, fields, units),
            rank=1,
            effect="flatter",
        ),
    ]


_LARGE = 20_000  # sites, from which on making another model takes longer than a check should

GAP_FIRST, GAP_LAST, CCM = "-ACDEFGHIKLMNPQRSTVWY", "ACDEFGHIKLMNPQRSTVWY-", "ARNDCQEGHILKMFPSTWYV-"
"""Orders of the states of protein models: adabmDCA's, the one with the gap last, CCMpred's."""


def potts_readings(q: int, negated: "Callable[[], Model] | None" = None) -> list[Reading]:
    """Other readings of a model of sites with q states each; `negated` makes the one with the other sign."""
    sign = Reading(
        "sign",
        "couplings and fields have the other sign",
        "negate all parameters",
        negated,
        scale=1.0 if negated else -1.0,
    )
    numbers = np.arange(q)
    readings = [sign]
    for name, meaning, step in (
        ("gap last", "the model's states are numbered one lower than the data's, the first one last", -1),
        ("gap first", "the model's states are numbered one higher than the data's, the last one first", 1),
    ):
        remedy = f"renumber the data: (x {'-' if step < 0 else '+'} 1) % {q}"
        if q == len(GAP_FIRST):
            letters = GAP_LAST if step < 0 else GAP_FIRST
            remedy += f"; of sequences, read them with alphabet={letters!r}"
        readings.append(Reading(name, meaning, remedy, states=((numbers + step) % q).astype(np.uint8)))
    if q == len(GAP_FIRST):
        for name, data, model in (
            ("CCMpred's order", GAP_FIRST, CCM),
            ("alphabetical order", CCM, GAP_FIRST),
        ):
            states = np.array([model.index(letter) for letter in data], np.uint8)
            meaning = f"the model's states are in the order {model} and the data's in the order {data}"
            remedy = f"read the sequences with alphabet={model!r}"
            readings.append(Reading(name, meaning, remedy, states=states))
    return readings
