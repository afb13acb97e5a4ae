"""Other readings of a model's parameters: what the same numbers mean under another convention.

Weights that are the wrong way round, a sign, or spins taken for bits give a model that is valid and wrong. Each model
lists the readings that are plausible for it (`Model.other_readings`), the most usual mistake first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from meltpoint.annealing.blocks import Sparse
from meltpoint.layers import Unit
from meltpoint.layers.unit import Floats

if TYPE_CHECKING:
    from meltpoint.models.model import Model


Effect: TypeAlias = Literal["none", "sharper", "flatter", "colder"]


@dataclass(frozen=True, eq=False)
class Reading:
    """A convention by name, what it means in words, and what to do if it is the right one.

    It is another model (`model` makes it, None is the same one), the same with all inputs times `scale`, or with other
    numbers for the states: state s of the data is state states[s] of the model. `rank` says how unusual it is, from 0
    on; `effect` what it does to the units' inputs. A sharper reading, with larger inputs, fits better for every model
    that was trained too little. So it is compared with the same model at half the temperature, "colder", which is no
    convention.
    """

    name: str
    meaning: str
    remedy: str
    model: "Callable[[], Model] | None" = None
    scale: float = 1.0
    states: NDArray[np.uint8] | None = None
    rank: int = 0

    effect: Effect = "none"

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
    if not set(own) <= set(_VALUES):
        return []
    spins, same = own == ("spin", "spin"), partial(rbm, visible=own[0], hidden=own[1])

    def with_arrays(name: str, meaning: str, remedy: str, *arrays: Floats) -> Reading:
        return Reading(name, meaning, remedy, partial(same, *arrays))

    readings = [
        with_arrays("sign", "all parameters have the other sign", "negate all parameters", -w, -a, -b)
    ]
    if not spins:
        readings.append(Reading("colder", "", "", partial(same, 2 * w, 2 * a, 2 * b), effect="colder"))
    if w.shape[0] == w.shape[1]:
        exchange, transpose = "exchange visible_bias and hidden_bias", "transpose the weights"
        readings += [
            with_arrays("transposed", "the weights are (hidden, visible)", transpose, w.T, a, b),
            with_arrays("biases swapped", "visible and hidden biases are exchanged", exchange, w, b, a),
            with_arrays(
                "sides swapped",
                "visible and hidden units are exchanged",
                f"{transpose} and exchange the biases",
                *(w.T, b, a),
            ),
        ]
    others = [
        Reading(
            visible if visible == hidden else f"{visible}, {hidden}",
            f"the parameters are for {_values(visible, hidden)}",
            f"make the model with visible={visible!r}, hidden={hidden!r}",
            partial(rbm, w, a, b, visible=visible, hidden=hidden),
            rank=2 if visible != hidden else 0 if spins else 1,
            effect="flatter" if spins else "sharper",
        )
        for visible, hidden in _UNITS
        if (visible, hidden) != own
    ]
    # A flatter model is rarely better unless it is right.
    return [*others, *readings] if spins else [*readings, *others]


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

    def with_parameters(
        name: str, meaning: str, remedy: str, *parameters: object, rank: int = 0, effect: Effect = "none"
    ) -> Reading:
        return Reading(name, meaning, remedy, partial(ising, *parameters), rank=rank, effect=effect)

    other, rank, effect = ("bernoulli", 0, "flatter") if units == "spin" else ("spin", 1, "sharper")
    values, make = (
        f"the parameters are for sites that are {_VALUES[other]}",
        f"make the model with units={other!r}",
    )
    sums = "the couplings are those of a sum over all i and j, in which every pair counts twice"
    twice, half = (couplings * 2.0, fields, units), (couplings * 0.5, fields, units)
    return [
        sign,
        Reading("colder", "", "", scale=2.0, effect="colder"),
        *(
            with_parameters(
                f"sign of the {of}", f"the {of} have the other sign", f"negate the {of}", *own, units
            )
            for of, own in (("couplings", (-couplings, fields)), ("fields", (couplings, -fields)))
        ),
        with_parameters(other, values, make, couplings, fields, other, rank=rank, effect=effect),
        with_parameters("pairs once", sums, "double the couplings", *twice, rank=1, effect="sharper"),
        with_parameters(
            "pairs twice",
            "every pair was counted twice",
            "halve the couplings",
            *half,
            rank=1,
            effect="flatter",
        ),
    ]


_LARGE = 20_000  # sites, from which on making another model takes longer than a check should

GAP_FIRST, GAP_LAST, CCM = "-ACDEFGHIKLMNPQRSTVWY", "ACDEFGHIKLMNPQRSTVWY-", "ARNDCQEGHILKMFPSTWYV-"
"""Orders of the states of protein models: adabmDCA's, the one with the gap last, CCMpred's."""

_ORDERS = {21: (GAP_FIRST, GAP_LAST, CCM, f"-{CCM[:-1]}"), 20: (GAP_FIRST[1:], CCM[:-1])}


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
        readings.append(
            Reading(name, meaning, remedy, states=((numbers + step) % q).astype(np.min_scalar_type(q - 1)))
        )
    known = {tuple(reading.states) for reading in readings if reading.states is not None}
    for data, model in permutations(_ORDERS.get(q, ()), 2):
        states = np.array([model.index(letter) for letter in data], np.uint8)
        if tuple(states) not in known:  # where the gap is was asked already
            known.add(tuple(states))
            meaning = f"the model's states are in the order {model} and the data's in the order {data}"
            remedy = f"read the sequences with alphabet={model!r}"
            readings.append(Reading(f"{data} as {model}", meaning, remedy, states=states))
    return readings
